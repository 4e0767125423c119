/**
 * vitest tells of every file that it has ever run, as that file ended last. What failed on the mutant
 * before says nothing of this one.
 */
export function ofThisRun<Module extends { readonly moduleId: string }>(
  modules: readonly Module[],
  asked: readonly { readonly moduleId: string }[],
): readonly Module[] {
  const files = new Set(asked.map(({ moduleId }) => moduleId));
  return modules.filter(({ moduleId }) => files.has(moduleId));
}
