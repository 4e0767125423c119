/**
 * `npm run bench -- shards`: who owns which shard when processes come and go, beside kazoo's
 * SetPartitioner on the same server. Ends with 0 also when a goal is missed; with 1 when something
 * could not be measured or two processes owned one shard.
 */
import type { Benchmark } from '../benchmark.ts';
import { usageOf } from '../options.ts';
import type { Suite } from '../suite.ts';
import { makeOf, runSuite } from '../suite.ts';
import { findPeers } from '../zookeeper/peers.ts';
import { cost } from './benchmarks/cost.ts';
import { members } from './benchmarks/members.ts';
import type { Stage } from './stage.ts';
import { leaseMs, makeStage } from './stage.ts';

const makers: Readonly<Record<string, (stage: Stage) => Benchmark>> = {
  'shards-256': (stage) => members(stage, 'shards-256', 256),
  'shards-1000': (stage) => members(stage, 'shards-1000', 1_000),
  cost,
};

const asked = {
  subject: 'shards',
  names: Object.keys(makers),
  defaultRounds: 3,
  quick: true,
} as const;

const suite: Suite = {
  ...asked,
  stored: 'servers',
  usage: usageOf(asked, 'where the servers keep their data'),
  async prepare(surroundings, progress) {
    const peers = findPeers(progress);
    const stage = makeStage(surroundings, peers, progress);
    return {
      make: makeOf(makers, stage),
      notes: [
        `leases and sessions of ${leaseMs} ms; kazoo's time_boundary is 1 s, and by default 30 s`,
        [...peers.versions.values()].join(', '),
        ...[...stage.absent].map(([name, reason]) => `${name} is absent: ${reason}`),
      ],
      close: () => stage.close(),
    };
  },
};

export function run(args: readonly string[]): Promise<number> {
  return runSuite(suite, args);
}
