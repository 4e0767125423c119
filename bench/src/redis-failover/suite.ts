/**
 * `npm run bench -- redis-failover`: how long clients cannot write when a Redis primary is killed or moved,
 * and of what that time consists. Ends with 0 also when a goal is missed; with 1 when something could
 * not be measured or an acknowledged write was lost.
 */
import { loadavg } from 'node:os';
import { redisAvailable } from '@incumbent/servers';
import { serverAvailable, startServer } from '@incumbent/zookeeper-testing';
import type { Benchmark } from '../benchmark.ts';
import { usageOf } from '../options.ts';
import type { Samples } from '../samples.ts';
import { makeSamples } from '../samples.ts';
import type { Suite } from '../suite.ts';
import { makeOf, runSuite } from '../suite.ts';
import { bare, sentinel } from './benchmarks/beside.ts';
import { killed } from './benchmarks/killed.ts';
import { planned } from './benchmarks/planned.ts';
import { scenarios } from './benchmarks/scenarios.ts';
import { full, quick } from './scale.ts';
import type { Stage } from './stage.ts';

interface Shared {
  readonly stage: Stage;
  readonly samples: Samples;
}

const makers: Readonly<Record<string, (shared: Shared) => Benchmark>> = {
  killed: ({ stage, samples }) => killed(stage, samples),
  planned: ({ stage }) => planned(stage),
  sentinel: ({ stage, samples }) => sentinel(stage, samples),
  bare: ({ stage, samples }) => bare(stage, samples),
  scenarios: ({ stage }) => scenarios(stage),
};

const asked = {
  subject: 'redis-failover',
  names: Object.keys(makers),
  defaultRounds: 5,
  quick: true,
} as const;

const suite: Suite = {
  ...asked,
  stored: 'nothing of Redis, and ZooKeeper,',
  usage: usageOf(asked, 'nothing'),
  async prepare(surroundings, _progress, { quick: isQuick }) {
    const missing = redisAvailable() ?? serverAvailable();
    if (missing !== undefined) throw new Error(missing);
    const zooKeeper = await startServer();
    const stage: Stage = { surroundings, scale: isQuick ? quick : full, zooKeeper };
    return {
      make: makeOf(makers, { stage, samples: makeSamples() }),
      notes: [
        'one ZooKeeper, two managers at default settings, one primary and two replicas with ' +
          'min-replicas-to-write 1',
        'one client that writes every ms',
        `load of the last 15 minutes ${(loadavg()[2] ?? 0).toFixed(2)}`,
      ],
      close: () => zooKeeper.close(),
    };
  },
};

export function run(args: readonly string[]): Promise<number> {
  return runSuite(suite, args);
}
