// Runs the tests of the built packages under other releases of Node.
//
//   npm run test:node -- 24        or several: -- 22 24 26
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { obtainNode } from './lib/node-release.mjs';
import { root, run } from './lib/run.mjs';

const majors = process.argv.slice(2);
if (majors.length === 0 || majors.some((major) => !/^\d+$/.test(major))) {
  console.error('usage: npm run test:node -- 24   (major versions of Node: 22, 24, 26)');
  process.exit(64);
}

const files = readdirSync(join(root, 'packages')).flatMap((name) => {
  const folder = `packages/${name}/test-node`;
  if (!existsSync(join(root, folder))) return [];
  const tests = readdirSync(join(root, folder)).filter((file) => file.endsWith('.test.mjs'));
  return tests.map((file) => `${folder}/${file}`);
});
if (files.length === 0) {
  console.error('no test matches packages/*/test-node/*.test.mjs');
  process.exit(1);
}

for (const major of majors) {
  const { path, version } = await obtainNode(major);
  console.log(`Node ${version}`);
  const { code } = await run([path, '--test', ...files], { output: 'inherit' });
  if (code !== 0) process.exitCode = 1;
}
