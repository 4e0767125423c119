/**
 * `npm run bench -- following`: how soon clients follow a new leader, what calls to it cost beside calls to
 * an address, and what elections ask of object stores. Ends with 0 also when a goal is missed; with 1
 * when something could not be measured or an election was wrong.
 */
import { loadavg } from 'node:os';
import type { Benchmark } from '../benchmark.ts';
import { usageOf } from '../options.ts';
import type { Suite } from '../suite.ts';
import { makeOf, runSuite } from '../suite.ts';
import { calls } from './benchmarks/calls.ts';
import { objects } from './benchmarks/objects.ts';
import { reaction } from './benchmarks/reaction.ts';
import { full, quick } from './scale.ts';
import type { Stage } from './stage.ts';

const makers: Readonly<Record<string, (stage: Stage) => Benchmark>> = { reaction, calls, objects };

const asked = {
  subject: 'following',
  names: Object.keys(makers),
  defaultRounds: 3,
  quick: true,
} as const;

const suite: Suite = {
  ...asked,
  stored: 'file store',
  usage: usageOf(asked, 'where the file store is'),
  prepare(surroundings, _progress, { quick: isQuick }) {
    const stage: Stage = { surroundings, scale: isQuick ? quick : full };
    return {
      make: makeOf(makers, stage),
      notes: [
        `D = ${stage.scale.leaseMs / 1_000} s unless a row says otherwise`,
        'S3 and Cloud Storage: stand-ins of the tests on this machine, by plain HTTP',
        `load of the last 15 minutes ${(loadavg()[2] ?? 0).toFixed(2)}`,
      ],
    };
  },
};

export function run(args: readonly string[]): Promise<number> {
  return runSuite(suite, args);
}
