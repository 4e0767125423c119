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
        const { state, note, errors } = test.result();
        if (state === 'passed') counts.passed += 1;
        else if (state === 'skipped')
          counts.skipped.push({ name, reason: note ?? unexplained(test) });
        else counts.failed.push(withReason(name, errors));
      }
      // A hook or an import that failed may leave no failed test behind it.
      for (const owner of [module, ...module.children.allSuites()]) {
        if (owner.errors().length > 0) {
          const name = owner === module ? file : `${file} > ${owner.fullName}`;
          counts.failed.push(withReason(name, owner.errors()));
        }
      }
    }
    for (const error of unhandledErrors) counts.failed.push(`unhandled error: ${error.message}`);
    writeFileSync(process.env.VITEST_COUNTS_FILE, JSON.stringify(counts));
  }
}

// The summary stands at the end of a long log, whose beginning may be cut off where it is kept.
function withReason(name, errors) {
  const [error] = errors ?? [];
  if (error === undefined) return name;
  const place = error.stacks?.[0];
  const where = place ? ` (${relative(process.cwd(), place.file)}:${place.line})` : '';
  return `${name}: ${error.message.split('\n', 1)[0]}${where}`;
}

function unexplained(test) {
  if (test.options.mode === 'todo') return 'to do';
  if (test.options.mode === 'skip') return 'marked skip in the source';
  return 'no reason given';
}
