import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import type { TestSequencer, TestSpecification } from 'vitest/node';
import root from '../vitest.config.ts';
import type { Plan } from './src/plan.ts';

// The unit tests as they always are, but on sources with all mutants in them, each behind a switch.
// `mutation/src/unit-tests.ts` starts this; the plan says what the sources are.
const unit = root.test?.projects?.find(
  (project) => typeof project === 'object' && 'test' in project && project.test?.name === 'unit',
);
if (typeof unit !== 'object' || !('test' in unit)) throw new Error('the project "unit" is gone');

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
  ...unit,
  root: plan.root,
  plugins: [
    {
      name: 'mutants',
      enforce: 'pre',
      load: (id) => plan.sources[id],
    },
  ],
  test: {
    ...unit.test,
    sequence: { sequencer: AsGiven },
    ...(notes === undefined
      ? { maxWorkers: 1, bail: 1, teardownTimeout: 2_000 }
      : {
          // What a file reaches while it is loaded counts for each file that loads it.
          isolate: true,
          maxWorkers: plan.processes,
          setupFiles: [plan.noteReached],
        }),
  },
});
