import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const dist = (file: string): string =>
  JSON.stringify(new URL(`../dist/${file}`, import.meta.url).href);

// Its work blocks the event loop, so it neither renews nor stops.
const work = `
  const stuck = () => {
    setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 1);
    return new Promise(() => {});
  };
  const lead = ([{ createElection }, { memory }]) => {
    const election = createElection({ name: 'jobs', backend: memory(), lease: '1s' });
    return election.lead(stuck, { watchdog: 'kill' });
  };
  // The watchdog has nothing to watch until the other one gives the seat back.
  const wait = ([{ createElection }, { memory }]) => {
    const common = { name: 'jobs', backend: memory(), lease: '1s' };
    const other = createElection(common);
    void other.lead(
      () => {
        void createElection(common).lead(stuck, { watchdog: 'kill' });
      },
      { holdAtLeast: '1s' },
    );
  };`;
const both = `Promise.all([import(${dist('index.js')}), import(${dist('backends/memory/index.js')})])`;

test.each([
  ['a module', ['--input-type=module', '-e', `${work} lead(await ${both});`]],
  ['a script', ['--input-type=commonjs', '-e', `${work} void ${both}.then(lead);`]],
  ['a candidate that has waited', ['--input-type=module', '-e', `${work} wait(await ${both});`]],
])('the watchdog ends a process whose work is stuck, also that of %s', async (_, args) => {
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
});
