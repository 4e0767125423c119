// The built command under this release of Node.
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const bin = fileURLToPath(new URL('../dist/bin.js', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'incumbent-node-'));
after(() => rmSync(directory, { recursive: true, force: true }));

/** The command on a store of its own. Nothing but its output may be on stderr: no warning of Node. */
function incumbent(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
    env: { PATH: process.env.PATH, INCUMBENT_STORE: `file:${directory}` },
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('shows its help', () => {
  const { status, stdout, stderr } = incumbent('--help');
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
  assert.match(stdout, /Usage: incumbent COMMAND/);
});

test('reads and writes an election', () => {
  assert.match(incumbent('init', '-e', 'x').stdout, /is ready on file:/);
  const drain = ['drain', '-e', 'x', '--id', 'a', '--until', '2h'];
  assert.match(incumbent(...drain).stderr, /`--force` keeps it out all the same/);
  assert.match(incumbent(...drain, '--force').stdout, /is kept out/);
  const { status, stdout, stderr } = incumbent('status', '-e', 'x', '--json');
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
  const { state, drains } = JSON.parse(stdout);
  assert.deepEqual([state, drains.length], ['vacant', 1]);
});

test('measures the store, and leaves nothing behind', () => {
  const { status, stdout, stderr } = incumbent('doctor', '--watch-loop', '20ms', '--samples', '3');
  assert.equal(stderr, '');
  assert.equal(status, 0, stdout);
  assert.match(stdout, /nothing broken/);
  assert.deepEqual(readdirSync(directory), ['x']);
});

test('refuses with the exit code and the sentence', () => {
  const { status, stdout, stderr } = incumbent('leader', '-e', 'x');
  assert.deepEqual({ status, stdout }, { status: 1, stdout: '' });
  assert.equal(stderr, 'incumbent: nobody leads election "x": no leader is on record\n');
  assert.equal(incumbent('nonsense').status, 64);
});
