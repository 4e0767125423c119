import { parseArgs } from 'node:util';
import { brokenFrom, brokenUsage, seedFrom, wholeNumber } from '../harness/read-options.ts';
import type { Broken } from './broken.ts';
import { brokenForms } from './broken.ts';

export interface Settings {
  /** Of all sets together. */
  readonly rounds: number;
  /** Each with a primary, replicas, managers and clients of its own; they are struck side by side. */
  readonly sets: number;
  readonly ensemble: boolean;
  readonly seed: number;
  readonly broken: Broken | undefined;
}

export const usage: string = `npm run chaos -- redis-failover [options]

Redis servers, their managers and clients that write without pause, while all of them fail.

  --rounds N       default 200
  --short          10 rounds: part of npm test
  --sets K         how many sets are struck side by side; default 2
  --ensemble       three ZooKeeper servers instead of one
  --seed S         as an earlier run printed it: the same faults, in the same order
  --broken NAME    managers or clients that are broken on purpose: the run must fail
${brokenUsage(brokenForms, 16)}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rounds: { type: 'string' },
      short: { type: 'boolean', default: false },
      sets: { type: 'string', default: '2' },
      ensemble: { type: 'boolean', default: false },
      seed: { type: 'string' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const sets = wholeNumber('--sets', values.sets, 1, 20);
  return {
    rounds: wholeNumber('--rounds', values.rounds ?? (values.short ? '10' : '200'), sets, 100_000),
    sets,
    ensemble: values.ensemble,
    seed: seedFrom(values.seed),
    broken: brokenFrom<Broken>(brokenForms, values.broken),
  };
}
