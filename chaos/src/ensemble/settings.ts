import { parseArgs } from 'node:util';
import { brokenFrom, brokenUsage, seedFrom, wholeNumber } from '../read-options.ts';
import type { Broken } from './broken.ts';
import { brokenCandidates } from './broken.ts';

export interface Settings {
  readonly minutes: number;
  readonly candidates: number;
  readonly seed: number;
  readonly broken: Broken | undefined;
}

export const usage: string = `npm run chaos:ensemble -- [options]

  --minutes N      how long (default 30)
  --short          two minutes: part of npm test
  --candidates N   default 7
  --seed S         as an earlier run printed it: the same faults, in the same order
  --broken NAME    candidates that are broken on purpose: the run must fail
${brokenUsage(brokenCandidates, 14)}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      minutes: { type: 'string' },
      short: { type: 'boolean', default: false },
      candidates: { type: 'string', default: '7' },
      seed: { type: 'string' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  return {
    minutes: wholeNumber('--minutes', values.minutes ?? (values.short ? '2' : '30'), 1, 10_000),
    // Two of them are struck at a time, and whoever is restarted takes a while.
    candidates: wholeNumber('--candidates', values.candidates, 4, 50),
    seed: seedFrom(values.seed),
    broken: brokenFrom(brokenCandidates, values.broken),
  };
}
