import type { Tone } from '../terminal/style.ts';

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
  /** While it is `ok`, people want it only if they ask for everything. Programs always get it. */
  readonly detail?: true;
  /** It sums up other findings: for people alone. */
  readonly onlyPeople?: true;
  /** The numbers in it, for programs. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** The headings of the findings. */
export type Section = 'the store' | 'measured' | 'the timing';

const sections: Readonly<Record<string, Section>> = {
  reads: 'measured',
  writes: 'measured',
  checks: 'measured',
  'event-loop': 'measured',
  scratch: 'measured',
  timing: 'the timing',
  rules: 'the timing',
};

export function sectionOf({ check }: Finding): Section {
  if (/^P\d$|-margin$/.test(check)) return 'the timing';
  return sections[check] ?? 'the store';
}

export const levelTones: Readonly<Record<Level, Tone>> = {
  ok: 'good',
  note: 'faint',
  warn: 'warn',
  broken: 'bad',
};
