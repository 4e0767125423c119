// A vitest reporter that writes what scripts/test.mjs counts. Vitest's own JSON reporter leaves out
// the reason given to `context.skip(reason)`, which we print.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export
export default class VitestCounts {
  onTestRunEnd(modules, unhandledErrors) {
    const counts = { passed: 0, failed: [], skipped: [] };
    for (const module of modules) {
      const file = relative(process.cwd(), module.moduleId);
      for (const test of module.children.allTests()) {
        const name = `${file} > ${test.fullName}`;
        const { state, note } = test.result();
        if (state === 'passed') counts.passed += 1;
        else if (state === 'skipped')
          counts.skipped.push({ name, reason: note ?? unexplained(test) });
        else counts.failed.push(name);
      }
      // A hook or an import that failed may leave no failed test behind it.
      for (const owner of [module, ...module.children.allSuites()]) {
        if (owner.errors().length > 0) {
          counts.failed.push(owner === module ? file : `${file} > ${owner.fullName}`);
        }
      }
    }
    for (const error of unhandledErrors) counts.failed.push(`unhandled error: ${error.message}`);
    writeFileSync(process.env.VITEST_COUNTS_FILE, JSON.stringify(counts));
  }
}

function unexplained(test) {
  if (test.options.mode === 'todo') return 'to do';
  if (test.options.mode === 'skip') return 'marked skip in the source';
  return 'no reason given';
}
