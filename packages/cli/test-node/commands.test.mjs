// The built command under this release of Node.
import { strict as assert } from 'node:assert';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const bin = fileURLToPath(new URL('../dist/bin.js', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'incumbent-node-'));
const histories = mkdtempSync(join(tmpdir(), 'incumbent-node-'));
after(() => {
  rmSync(directory, { recursive: true, force: true });
  rmSync(histories, { recursive: true, force: true });
});

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

test('keeps a history in the SQLite of this release, or in that of the package', async () => {
  const file = join(histories, 'history.db');
  assert.equal(
    incumbent('run', '-e', 'recorded', '--once', '--', process.execPath, '-e', '').status,
    0,
  );
  const recorder = spawn(process.execPath, [bin, 'record', '--to', file, '--json'], {
    env: { PATH: process.env.PATH, INCUMBENT_STORE: `file:${directory}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let warnings = '';
  recorder.stderr.setEncoding('utf8').on('data', (text) => {
    warnings += text;
  });
  for await (const line of createInterface({ input: recorder.stdout })) {
    if (JSON.parse(line).event === 'read') recorder.kill();
  }
  if (recorder.exitCode === null) await once(recorder, 'exit');
  assert.deepEqual([recorder.exitCode, warnings], [143, '']);
  const { stdout, stderr } = incumbent('history', '-e', 'recorded', '--from', file, '--json');
  assert.equal(stderr, '');
  assert.equal(JSON.parse(stdout).why, 'work-finished');
});
