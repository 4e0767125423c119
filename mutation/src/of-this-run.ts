/** The part of vitest's report of a run that counts for one mutant. */

/**
 * vitest tells of every file that it has ever run, as that file ended last. A failure on an earlier
 * mutant says nothing of this one.
 */
export function ofThisRun<Module extends { readonly moduleId: string }>(
  modules: readonly Module[],
  asked: readonly { readonly moduleId: string }[],
): readonly Module[] {
  const files = new Set(asked.map(({ moduleId }) => moduleId));
  return modules.filter(({ moduleId }) => files.has(moduleId));
}

interface ReportedModule {
  state(): string;
  readonly children: { allTests(state: 'failed'): Iterable<unknown> };
}

/**
 * The first failure ends the run. A file whose tests run at the same time has not ended then, and so is not
 * said to have failed.
 */
export function hasFailed(module: ReportedModule): boolean {
  return module.state() === 'failed' || [...module.children.allTests('failed')].length > 0;
}
