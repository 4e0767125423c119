import { SettingError } from '../failure.ts';

/**
 * The order of the sources of a setting: the highest rank wins. On purpose not as in the gem, where
 * the file won.
 */
export const ranks = { file: 0, variable: 1, flag: 2 } as const;

/** A value, and where it was given. */
export interface Given {
  /**
   * Text from a flag or a variable. From a file it is any value, with texts as they were written.
   */
  readonly value: unknown;
  /** Its name at that source: `--max-failures`, `max_failures`, `INCUMBENT_REDIS_ROOT`. */
  readonly name: string;
  /** The beginning of errors about it: `config.yml:12:3: `, or nothing. */
  readonly where: string;
  /** The same for the items of a list. */
  readonly items?: readonly string[];
  readonly rank: (typeof ranks)[keyof typeof ranks];
}

/** @param sentence goes on behind the name, such as `is a whole number …` */
export function refuse(given: Given, sentence: string): never {
  throw new SettingError(`${given.where}${given.name} ${sentence}`);
}

/** The value as errors show it: short, and on one line. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}
