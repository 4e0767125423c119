/**
 * A busy machine makes tests with real servers fail now and then. Such a failure counts only if the
 * same test fails again.
 */
import type { TestFile, Verdict } from './tests.ts';

/**
 * Runs a file up to its first failure, or only one test of it.
 * @param mutant undefined: the code as it is
 */
export type RunFile = (
  mutant: number | undefined,
  file: TestFile,
  testId?: string,
) => Promise<Verdict>;

/** The tests of a file after one that failed only once have not run yet. */
const mostTries = 2;

/** Tries the files in turn. All of them pass without a mutant, as was seen before. */
export async function failsAgain(
  mutant: number,
  files: readonly TestFile[],
  run: RunFile,
): Promise<Verdict> {
  for (const file of files) {
    for (let tries = 1; tries <= mostTries; tries += 1) {
      const first = await run(mutant, file);
      if (first.kind === 'passed') break;
      const testId = first.kind === 'failed' ? first.testId : undefined;
      const again = await run(mutant, file, testId);
      if (again.kind === 'passed') continue;
      if (!tookTooLong(again)) return again;
      // It may be the machine that is slow now.
      const control = await run(undefined, file, testId);
      if (control.kind === 'passed') return again;
    }
  }
  return { kind: 'passed' };
}

export function tookTooLong(verdict: Verdict): boolean {
  return verdict.kind !== 'failed' || /timed? ?out/i.test(verdict.text);
}
