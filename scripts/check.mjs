// Everything that can be said about the code without running it, two checks at a time. Prints one
// line per check, and the output of those that fail.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pack, publicPackages } from './lib/pack.mjs';
import { run, seconds, shown, tool, tsc } from './lib/run.mjs';

/** The size of the tarball that npm downloads, in kB. */
const largest = { 'packages/incumbent': 300, 'packages/cli': 275 };

let failures = 0;
const scratch = mkdtempSync(join(tmpdir(), 'incumbent-check-'));
try {
  await check('build', tsc('-b'));
  const colors = `--colors=${process.stdout.isTTY ? 'force' : 'off'}`;
  const biome = ['ci', '--error-on-warnings', colors, '.'];
  // The longest first.
  const rest = [
    () => check('oxlint', tool('oxlint/bin/oxlint', '--type-aware')),
    () => check('types of the tests', tsc('-p', 'tsconfig.test.json', '--noEmit')),
    () => check('types of the pages', tsc('-p', 'packages/cli/web/tsconfig.json')),
    () => check('types of their tests', tsc('-p', 'packages/cli/test-integration/web')),
    ...publicPackages.map((path) => () => checkPackage(path)),
    () => check('prose', [process.execPath, 'scripts/prose.mjs']),
    () => check('biome', tool('@biomejs/biome/bin/biome', ...biome)),
  ];
  await Promise.all([inTurn(rest), inTurn(rest)]);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
if (failures > 0) {
  console.log(`${failures} of the checks failed; \`npm run format\` repairs what Biome can`);
  process.exitCode = 1;
}

/** Takes from the list until it is empty. */
async function inTurn(list) {
  for (let next = list.shift(); next !== undefined; next = list.shift()) await next();
}

async function checkPackage(path) {
  const tarball = await pack(path, scratch);
  const kB = statSync(tarball).size / 1_000;
  const isTooLarge = kB > (largest[path] ?? Infinity);
  console.log(`${isTooLarge ? 'FAILED' : 'ok    '} size ${path} (${kB.toFixed(1)} kB)`);
  if (isTooLarge) failures += 1;
  await check(`publint ${path}`, tool('publint/src/cli.js', 'run', tarball, '--strict'));
  const attw = tool('@arethetypeswrong/cli/dist/index.js', tarball, '--profile', 'esm-only');
  await check(`attw ${path}`, attw);
}

async function check(name, command) {
  const { code, output, ms } = await run(command);
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds(ms)})`);
  if (code === 0) return;
  failures += 1;
  console.log(`$ ${shown(command)}\n${output}`);
}
