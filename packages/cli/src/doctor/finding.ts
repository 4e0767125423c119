import type { Tone } from '../output/style.ts';

/** `note`: to know. `warn`: it works, with less room than it should have. `broken`: it will not do. */
export type Level = 'ok' | 'note' | 'warn' | 'broken';

/** One thing that the doctor looked at. */
export interface Finding {
  /** Short and stable: programs look for it. */
  readonly check: string;
  readonly level: Level;
  /** For people, on one line. */
  readonly message: string;
  /** Always so: not worth a line unless one asks for everything. */
  readonly onlyVerbose?: true;
  /** The numbers in it, for programs. */
  readonly data?: Readonly<Record<string, unknown>>;
}

export const levelTones: Readonly<Record<Level, Tone>> = {
  ok: 'good',
  note: 'faint',
  warn: 'warn',
  broken: 'bad',
};
