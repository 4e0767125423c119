import { parseArgs } from 'node:util';
import { brokenFrom, brokenUsage, seedFrom, wholeNumber } from '../harness/read-options.ts';
import type { Broken } from './broken.ts';
import { brokenCandidates } from './broken.ts';

export interface Settings {
  readonly rounds: number;
  readonly candidates: number;
  readonly seed: number;
  /** Default: a directory of its own, removed after a run that passed. */
  readonly store: string | undefined;
  readonly lease: string;
  readonly broken: Broken | undefined;
}

export const usage: string = `npm run chaos -- file-store [options]

  --short          20 rounds with 8 candidates, about a minute
  --rounds N       default 200
  --candidates N   default 20
  --seed S         as an earlier run printed it: the same faults at the same moments
  --store URL      as of \`incumbent run\`; default: a directory of its own
  --lease TIME     default 3s
  --broken NAME    candidates that are broken on purpose: the run must fail
${brokenUsage(brokenCandidates, 12)}

\`npm run chaos -- help\` lists the other scenarios.`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      short: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      candidates: { type: 'string' },
      seed: { type: 'string' },
      store: { type: 'string' },
      lease: { type: 'string', default: '3s' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const { short, store, lease, broken } = values;
  return {
    rounds: wholeNumber('--rounds', values.rounds ?? (short ? '20' : '200'), 1, 1_000_000),
    // With fewer than that everybody could be frozen at once.
    candidates: wholeNumber('--candidates', values.candidates ?? (short ? '8' : '20'), 6, 200),
    seed: seedFrom(values.seed),
    store,
    lease,
    broken: brokenFrom(brokenCandidates, broken),
  };
}
