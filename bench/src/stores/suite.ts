/**
 * `npm run bench -- stores`: elections on the stores that teams run. The same run measures the
 * store's own round trip, the Election of `etcd3` and a loop of `redlock`. Ends with 0 also when a
 * goal is missed; with 1 when something could not be measured or an election was wrong.
 */
import { loadavg } from 'node:os';
import type { Benchmark } from '../benchmark.ts';
import { usageOf } from '../options.ts';
import type { Suite } from '../suite.ts';
import { makeOf, runSuite } from '../suite.ts';
import { crash } from './benchmarks/crash.ts';
import { handOver } from './benchmarks/hand-over.ts';
import { idle } from './benchmarks/idle.ts';
import { many } from './benchmarks/many.ts';
import { roundTrips } from './benchmarks/round-trips.ts';
import { full, quick } from './scale.ts';
import type { Stage } from './stage.ts';
import { makeStage } from './stage.ts';

const makers: Readonly<Record<string, (stage: Stage) => Benchmark>> = {
  'hand-over': handOver,
  'round-trips': roundTrips,
  crash,
  idle,
  many,
};

const asked = {
  subject: 'stores',
  names: Object.keys(makers),
  defaultRounds: 3,
  quick: true,
} as const;

const suite: Suite = {
  ...asked,
  stored: 'servers and the file store',
  usage: usageOf(asked, 'where the file store is'),
  async prepare(surroundings, progress, { quick: isQuick }) {
    const stage = await makeStage(surroundings, isQuick ? quick : full, progress);
    return {
      make: makeOf(makers, stage),
      notes: [
        ...stage.versions,
        `D = ${stage.scale.leaseMs / 1_000} s unless a row says otherwise`,
        `load of the last 15 minutes ${(loadavg()[2] ?? 0).toFixed(2)}`,
        ...[...stage.absent].map(([store, reason]) => `${store} is absent: ${reason}`),
      ],
      close: () => stage.close(),
    };
  },
};

export function run(args: readonly string[]): Promise<number> {
  return runSuite(suite, args);
}
