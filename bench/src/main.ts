/**
 * `npm run bench`: what the library and the command cost, beside what the machine itself costs in
 * the same run. Ends with 0 also when a goal is missed; with 1 when something could not be measured
 * or an election was wrong.
 */
import type { MakeBenchmark } from './benchmark.ts';
import { freezeTakeover } from './benchmarks/freeze-takeover.ts';
import { guardMemory } from './benchmarks/guard-memory.ts';
import { idleFollowers } from './benchmarks/idle-followers.ts';
import { killTakeover } from './benchmarks/kill-takeover.ts';
import { manyElections } from './benchmarks/many-elections.ts';
import { resignTakeover } from './benchmarks/resign-takeover.ts';
import { startUp } from './benchmarks/start-up.ts';
import { defaultRounds } from './options.ts';
import { makeOf, runSuite } from './suite.ts';

const makers: Readonly<Record<string, MakeBenchmark>> = {
  resign: resignTakeover,
  kill: killTakeover,
  freeze: freezeTakeover,
  many: manyElections,
  idle: idleFollowers,
  startup: startUp,
  guard: guardMemory,
};

process.exitCode = await runSuite({
  command: 'npm run bench',
  names: Object.keys(makers),
  defaultRounds,
  stored: 'file store',
  usage: `npm run bench -- [--only NAME,...] [--rounds N] [--json | --markdown] [--directory DIR]

  --only       ${Object.keys(makers).join(', ')}
  --rounds     how often each is measured, default ${defaultRounds}; 3 takes two to three minutes
  --json       one object a line
  --markdown   the table of docs/evidence/benchmarks.md
  --directory  where the file store is put, default the folder for temporary files
`,
  prepare: (surroundings) => ({
    make: makeOf(makers, surroundings),
    notes: [],
  }),
});
