import { SettingError } from '../failure.ts';

/** What wins over what, when a setting is given twice. On purpose not as in the gem (its file won). */
export const ranks = { file: 0, variable: 1, flag: 2 } as const;

/** A value, and where it was given. */
export interface Given {
  /** Text from a flag or a variable; from a file whatever stands there, texts as they were written. */
  readonly value: unknown;
  /** As it is called there: `--max-failures`, `max_failures`, `INCUMBENT_REDIS_ROOT`. */
  readonly name: string;
  /** What errors begin with: `config.yml:12:3: `, or nothing. */
  readonly where: string;
  /** The same for the items of a list. */
  readonly items?: readonly string[];
  readonly rank: (typeof ranks)[keyof typeof ranks];
}

/** @param sentence goes on behind the name, such as `is a whole number …` */
export function refuse(given: Given, sentence: string): never {
  throw new SettingError(`${given.where}${given.name} ${sentence}`);
}

/** As it is shown in errors: short, and on one line. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}
