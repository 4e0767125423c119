/**
 * A process that holds vitest with all mutants compiled, and runs test files with one of them
 * switched on whenever it is asked to. Ended from outside when a mutant never comes to an end.
 */
import { join } from 'node:path';
import type { TestModule, Vitest } from 'vitest/node';
import { createVitest } from 'vitest/node';
import { ofThisRun } from './of-this-run.ts';
import { readPlan } from './plan.ts';

export interface Question {
  /** Undefined: the code as it is. */
  readonly mutant: number | undefined;
  /** In this order, up to the first that fails. Undefined: all. */
  readonly testFiles: readonly string[] | undefined;
  readonly testTimeoutMs: number | undefined;
}

export interface TestFileRun {
  readonly testFile: string;
  readonly ms: number;
  readonly slowestTestMs: number;
}

export interface Answer {
  /** The first that failed, or the error that nobody caught. */
  readonly failure: { readonly testFile: string; readonly text: string } | undefined;
  readonly runs: readonly TestFileRun[];
}

const { root, tests } = readPlan(process.env['INCUMBENT_MUTATION_PLAN'] ?? '');
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

async function answer({ mutant, testFiles, testTimeoutMs }: Question): Promise<Answer> {
  process.env['INCUMBENT_MUTANT'] = String(mutant ?? -1);
  vitest ??= await createVitest('test', {
    config: join(root, 'mutation/vitest.config.ts'),
    root,
    watch: false,
    reporters: [{}],
  });
  const [project] = vitest.projects;
  if (project === undefined) throw new Error('vitest has no project');
  if (testTimeoutMs !== undefined) project.config.testTimeout = testTimeoutMs;
  const specifications =
    testFiles === undefined
      ? await vitest.globTestSpecifications(tests?.split(',') ?? [])
      : testFiles.map((file) => project.createSpecification(file));
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const modules = ofThisRun(testModules, specifications);
  const runs = modules.map(describeRun);
  const failed = modules.find((module) => module.state() === 'failed');
  if (failed !== undefined) {
    return { failure: { testFile: failed.moduleId, text: whyFailed(failed) }, runs };
  }
  const [uncaught] = unhandledErrors;
  if (uncaught === undefined) return { failure: undefined, runs };
  return { failure: { testFile: '', text: `nobody caught: ${firstLine(uncaught)}` }, runs };
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

function whyFailed(module: TestModule): string {
  for (const test of module.children.allTests('failed')) {
    return `${test.fullName}: ${firstLine(test.result().errors?.[0])}`;
  }
  return firstLine(module.errors()[0]);
}

function firstLine(error: unknown): string {
  const message = (error as { message?: unknown } | undefined)?.message ?? String(error);
  return String(message).split('\n')[0] ?? '';
}
