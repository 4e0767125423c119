// Everything that can be said about the code without running it: one line per check, and the
// output of those that fail.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pack, publicPackages } from './lib/pack.mjs';
import { run, seconds, shown, tool, tsc } from './lib/run.mjs';

let failures = 0;
const scratch = mkdtempSync(join(tmpdir(), 'incumbent-check-'));
try {
  await check('build', tsc('-b'));
  await check('types of the tests', tsc('-p', 'tsconfig.test.json', '--noEmit'));
  const colors = `--colors=${process.stdout.isTTY ? 'force' : 'off'}`;
  await check('biome', tool('@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', colors, '.'));
  await check('oxlint', tool('oxlint/bin/oxlint', '--type-aware'));
  for (const path of publicPackages) {
    const tarball = await pack(path, scratch);
    await check(`publint ${path}`, tool('publint/src/cli.js', 'run', tarball, '--strict'));
    await check(
      `attw ${path}`,
      tool('@arethetypeswrong/cli/dist/index.js', tarball, '--profile', 'esm-only'),
    );
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
if (failures > 0) {
  console.log(`${failures} of the checks failed; \`npm run format\` repairs what Biome can`);
  process.exitCode = 1;
}

async function check(name, command) {
  const { code, output, ms } = await run(command);
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds(ms)})`);
  if (code === 0) return;
  failures += 1;
  console.log(`$ ${shown(command)}\n${output}`);
}
