/**
 * A process that holds vitest with all mutants compiled, and runs test files with one of them
 * switched on whenever it is asked to. Ended from outside when a mutant never comes to an end.
 */
import { join } from 'node:path';
import type { TestCase, TestModule, Vitest } from 'vitest/node';
import { createVitest } from 'vitest/node';
import { hasFailed, ofThisRun } from './of-this-run.ts';
import type { Suite } from './plan.ts';
import { isTestOf, readPlan } from './plan.ts';

export interface Question {
  /** Undefined: the code as it is. */
  readonly mutant: number | undefined;
  /** In this order, up to the first that fails. Undefined: all. */
  readonly testFiles: readonly string[] | undefined;
  /** Only this test of these files. */
  readonly testId: string | undefined;
  readonly testTimeoutMs: number | undefined;
}

export interface TestFileRun {
  readonly testFile: string;
  readonly ms: number;
  readonly slowestTestMs: number;
}

export interface Failure {
  readonly testFile: string;
  /** Undefined: it was not in a test. */
  readonly testId: string | undefined;
  readonly text: string;
}

export interface Answer {
  /** The first that failed, or the error that nobody caught. */
  readonly failure: Failure | undefined;
  readonly runs: readonly TestFileRun[];
}

const plan = readPlan(process.env['INCUMBENT_MUTATION_PLAN'] ?? '');
const { root, tests } = plan;
const suite = process.env['INCUMBENT_MUTATION_SUITE'] as Suite;
/** Servers start in hooks. */
const hookTimeoutMs = 60_000;
let vitest: Vitest | undefined;

process.on('message', (question: Question) => {
  void answer(question).then(
    (reply) => process.send?.(reply),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));

async function answer({ mutant, testFiles, testId, testTimeoutMs }: Question): Promise<Answer> {
  process.env['INCUMBENT_MUTANT'] = String(mutant ?? -1);
  vitest ??= await createVitest('test', {
    config: join(root, 'mutation/vitest.config.ts'),
    root,
    watch: false,
    reporters: [{}],
  });
  const [project] = vitest.projects;
  if (project === undefined) throw new Error('vitest has no project');
  if (testTimeoutMs !== undefined) {
    project.config.testTimeout = testTimeoutMs;
    project.config.hookTimeout = Math.max(hookTimeoutMs, testTimeoutMs);
  }
  const specifications =
    testFiles === undefined
      ? (await vitest.globTestSpecifications(tests?.split(',') ?? [])).filter(({ moduleId }) =>
          isTestOf(plan, suite, moduleId),
        )
      : testFiles.map((file) =>
          project.createSpecification(
            file,
            testId === undefined ? undefined : { testIds: [testId] },
          ),
        );
  if (specifications.length === 0) return { failure: undefined, runs: [] };
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const modules = ofThisRun(testModules, specifications);
  const runs = modules.map(describeRun);
  const failed = modules.find(hasFailed);
  if (failed !== undefined) {
    return { failure: { testFile: failed.moduleId, ...whyFailed(failed) }, runs };
  }
  const [uncaught] = unhandledErrors;
  if (uncaught === undefined) return { failure: undefined, runs };
  return {
    failure: { testFile: '', testId: undefined, text: `nobody caught: ${firstLine(uncaught)}` },
    runs,
  };
}

function describeRun(module: TestModule): TestFileRun {
  const { duration, collectDuration } = module.diagnostic();
  const tests = [...module.children.allTests()].map((test) => test.diagnostic()?.duration ?? 0);
  return {
    testFile: module.moduleId,
    ms: duration + collectDuration,
    slowestTestMs: Math.max(0, ...tests),
  };
}

function whyFailed(module: TestModule): Omit<Failure, 'testFile'> {
  const ms = (test: TestCase) => test.diagnostic()?.duration ?? 0;
  // Several have failed if they ran at the same time: the shortest is the cheapest to run again.
  const [test] = [...module.children.allTests('failed')].sort((a, b) => ms(a) - ms(b));
  if (test === undefined) return { testId: undefined, text: firstLine(module.errors()[0]) };
  const text = `${test.fullName}: ${firstLine(test.result().errors?.[0])}`;
  return { testId: test.id, text };
}

function firstLine(error: unknown): string {
  const message = (error as { message?: unknown } | undefined)?.message ?? String(error);
  return String(message).split('\n')[0] ?? '';
}
