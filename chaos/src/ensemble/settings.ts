import { brokenFrom, brokenUsage, readTimedRun } from '../harness/read-options.ts';
import type { Broken } from './broken.ts';
import { brokenCandidates } from './broken.ts';

export interface Settings {
  readonly minutes: number;
  readonly candidates: number;
  readonly seed: number;
  readonly broken: Broken | undefined;
}

export const usage: string = `npm run chaos -- ensemble [options]

  --minutes N      how long (default 30)
  --short          two minutes: part of npm test
  --candidates N   default 7
  --seed S         as an earlier run printed it: the same faults, in the same order
  --broken NAME    candidates that are broken on purpose: the run must fail
${brokenUsage(brokenCandidates, 14)}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  // Two are struck at a time, and whoever is restarted takes a while.
  const run = readTimedRun(argv, { name: 'candidates', usual: 7, least: 4 }, 2);
  if (run === 'help') return run;
  const { count: candidates, broken, ...rest } = run;
  return { ...rest, candidates, broken: brokenFrom(brokenCandidates, broken) };
}
