/**
 * `npm run bench -- library`: what the library and the command cost, beside what the machine itself costs in
 * the same run. Ends with 0 also when a goal is missed; with 1 when something could not be measured
 * or an election was wrong.
 */
import type { MakeBenchmark } from '../benchmark.ts';
import { defaultRounds, usageOf } from '../options.ts';
import type { Suite } from '../suite.ts';
import { makeOf, runSuite } from '../suite.ts';
import { freezeTakeover } from './benchmarks/freeze-takeover.ts';
import { guardMemory } from './benchmarks/guard-memory.ts';
import { idleFollowers } from './benchmarks/idle-followers.ts';
import { killTakeover } from './benchmarks/kill-takeover.ts';
import { manyElections } from './benchmarks/many-elections.ts';
import { metricsCost } from './benchmarks/metrics-cost.ts';
import { resignTakeover } from './benchmarks/resign-takeover.ts';
import { startUp } from './benchmarks/start-up.ts';

const makers: Readonly<Record<string, MakeBenchmark>> = {
  resign: resignTakeover,
  kill: killTakeover,
  freeze: freezeTakeover,
  many: manyElections,
  idle: idleFollowers,
  startup: startUp,
  guard: guardMemory,
  metrics: metricsCost,
};

const asked = { subject: 'library', names: Object.keys(makers), defaultRounds } as const;

const suite: Suite = {
  ...asked,
  stored: 'file store',
  usage: usageOf(asked, 'where the file store is'),
  prepare: (surroundings) => ({ make: makeOf(makers, surroundings), notes: [] }),
};

export function run(args: readonly string[]): Promise<number> {
  return runSuite(suite, args);
}
