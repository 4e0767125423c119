import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import type { TestSequencer, TestSpecification } from 'vitest/node';
import root from '../vitest.config.ts';
import type { Plan } from './src/plan.ts';

// The tests as they always are, but on sources with all mutants in them, each behind a switch.
// `mutation/src/tests.ts` starts this, and the plan names the sources.
const suite = process.env['INCUMBENT_MUTATION_SUITE'];
const project = root.test?.projects?.find(
  (each) => typeof each === 'object' && 'test' in each && each.test?.name === suite,
);
if (typeof project !== 'object' || !('test' in project)) {
  throw new Error(`there is no project "${suite}"`);
}

/** Files in the order in which they were asked for. */
class AsGiven implements TestSequencer {
  shard(files: TestSpecification[]): TestSpecification[] {
    return files;
  }
  sort(files: TestSpecification[]): TestSpecification[] {
    return files;
  }
}

const planFile = process.env['INCUMBENT_MUTATION_PLAN'];
if (planFile === undefined) throw new Error('INCUMBENT_MUTATION_PLAN names no plan');
const plan = JSON.parse(readFileSync(planFile, 'utf8')) as Plan;
const notes = process.env['INCUMBENT_MUTATION_NOTES'];

export default defineConfig({
  ...project,
  root: plan.root,
  plugins: [
    {
      name: 'mutants',
      enforce: 'pre',
      load: (id) => plan.sources[id],
    },
  ],
  test: {
    ...project.test,
    sequence: { sequencer: AsGiven },
    ...(notes === undefined
      ? { maxWorkers: 1, bail: 1, teardownTimeout: 2_000 }
      : {
          // Mutants that a file reaches while it is loaded count for each file that loads it.
          isolate: true,
          maxWorkers: plan.processes,
          setupFiles: [plan.noteReached],
        }),
  },
});
