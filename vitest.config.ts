import { defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/lib/longest-first.ts';

// Our packages resolve to their sources, so a test never sees a stale build. Those of others
// resolve as Node has it, because Node cannot always load what they keep for bundlers ("module").
const conditions = ['@incumbent/source', 'node', 'development|production'];
const sources = { resolve: { conditions }, ssr: { resolve: { conditions } } };

/** Others use the processors, too (scripts/test.mjs). */
const isBusy = process.env['TESTS_ARE_BESIDE_OTHERS'] === '1';

export default defineConfig({
  test: {
    // A test that fails once has failed: no retries.
    retry: 0,
    sequence: { sequencer: LongestFirst },
    coverage: {
      provider: 'v8',
      include: ['packages/*/src/**/*.ts', 'simulation/src/**/*.ts'],
      reporter: ['text', 'html'],
    },
    projects: [
      {
        ...sources,
        test: {
          name: 'unit',
          include: [
            'packages/*/test/**/*.test.ts',
            '{simulation,mutation,chaos,bench,servers,examples}/test/**/*.test.ts',
            'scripts/test/**/*.test.mjs',
          ],
          // Only turn a hang into a failure: a busy machine is no failure.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // Else one less than there are processors, which is one of two.
          maxWorkers: 2,
          // Files in turn in one process: half of the stage's time was starting one for each. A
          // test restores all that it changes of its process (fakes, environment, listeners).
          isolate: false,
        },
      },
      {
        ...sources,
        test: {
          name: 'integration',
          // After the unit tests: vitest wants an order for projects that differ in workers.
          sequence: { groupOrder: 1 },
          include: ['{packages/*,bench,examples,servers,simulation}/test-integration/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // They mostly wait, so one more than the processors of CI. Each file may start servers of
          // its own, and more of them starve each other.
          maxWorkers: isBusy ? 2 : 3,
          // Of one file: elections mostly wait.
          maxConcurrency: isBusy ? 6 : 16,
        },
      },
    ],
  },
});
