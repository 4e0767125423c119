import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { detectIsolation, systemProbe } from '../src/environment.ts';
import { runShellCheck } from '../src/run/shell-check.ts';
import {
  bin,
  candidateProcess,
  incumbent,
  jsonLines,
  Program,
  scratch,
  start,
} from './support/bin.ts';

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** A store in a directory of its own, and the command on it. */
function onStore() {
  const directory = scratch();
  const on = (...args: string[]) => [...args, '-e', 'x', '--store', `file:${directory}`];
  return { directory, on, run: (...args: string[]) => incumbent(on(...args)) };
}

/** Asks again and again, because what happens in other processes can only be asked for. */
async function until(question: () => Promise<boolean>): Promise<void> {
  while (!(await question()));
}

test('a leader can be seen in every way, and an operator can make it go', async () => {
  const { directory, on, run } = onStore();
  const leader = candidateProcess(directory, 'x', 'a');
  await leader.printed(/leading 1/);
  const follower = candidateProcess(directory, 'x', 'b');
  const watch = start(on('watch'));
  await watch.printed(/led +a +token 1 +at a\.example:80\n/);

  const status = await run('status');
  expect(status).toMatchObject({ code: 0, stderr: '' });
  expect(status.stdout).toMatch(
    new RegExp(
      `^election  x\nstore     file:${directory}\nstate     led\nleader    a\n` +
        'address   a\\.example:80\ntoken     1\nsince {5}.*\nlease     20s\n$',
    ),
  );
  expect(jsonLines((await run('status', '--json')).stdout)).toEqual([
    {
      election: 'x',
      store: `file:${directory}`,
      state: 'led',
      leader: {
        id: 'a',
        incarnation: expect.any(String),
        addresses: ['a.example:80'],
        metadata: {},
      },
      ready: true,
      token: '1',
      since: iso,
      leaseMs: 20_000,
      holderGone: false,
      reservedUntil: null,
      reservedFor: null,
      settlingUntil: null,
      waiting: null,
      drains: [],
      unfenced: [],
      request: null,
    },
  ]);
  expect(await run('leader')).toEqual({ code: 0, stdout: 'a.example:80\n', stderr: '' });

  await until(async () => /^waiting +b +/m.test((await run('candidates')).stdout));
  expect(jsonLines((await run('candidates', '--json')).stdout)).toMatchObject([
    { role: 'leading', id: 'a' },
    { role: 'waiting', id: 'b', drainedUntil: null },
  ]);

  expect(await run('transfer', '--to', 'b')).toMatchObject({
    code: 0,
    stdout: 'asked "a" (token 1) to hand election "x" over to "b"\n',
  });
  await follower.printed(/leading 2/);
  await watch.printed(/led +b +token 2 +at b\.example:80\n/);

  expect(await run('drain', '--id', 'b', '--until', '1h')).toMatchObject({ code: 0 });
  await leader.printed(/leading 3/);
  const drained = await run('status');
  expect(drained.stdout).toMatch(/^drained +b until \S+ \S+ \(.* more\)$/m);
  expect(await run('drain', '--id', 'b', '--lift')).toMatchObject({ code: 0 });

  expect(await run('vacate')).toMatchObject({ code: 0 });
  await follower.printed(/leading 4/);

  const history = await run('history');
  expect(history.stdout).toMatch(/^ +1 +a .* handed-over$/m);
  expect(history.stdout).toMatch(/^ +2 +b .* vacated$/m);
  expect(history.stdout).toMatch(/^ +4 +b .* now .* leads$/m);
  expect(jsonLines((await run('history', '--json')).stdout)).toMatchObject([
    { token: '1', id: 'a', from: iso, to: iso, why: 'handed-over', gapBeforeMs: null },
    { token: '2', id: 'b', why: 'vacated', gapBeforeMs: expect.any(Number) },
    { token: '3', id: 'a', why: 'vacated' },
    { token: '4', id: 'b', to: null, why: null },
  ]);

  expect(await run('end')).toMatchObject({ code: 0 });
  await follower.printed(/stopped 4/);
  await watch.printed(/ended +last token 4\n/);
  expect((await leader.result).stderr).toContain('was ended for everybody');
  expect(await run('leader')).toMatchObject({ code: 1, stdout: '' });
  expect(await run('init', '--reopen')).toMatchObject({
    code: 0,
    stdout: 'election "x" is open again\n',
  });
});

test('a look at an election that does not exist does not make it', async () => {
  const { directory, on, run } = onStore();
  for (const [command, code] of [
    ['status', 0],
    ['history', 0],
    ['candidates', 0],
    ['leader', 1],
  ] as const) {
    const result = await run(command);
    expect(result.code).toBe(code);
    expect(result.stderr).toContain(`the directory ${directory}/x does not exist (yet)\n`);
  }
  const watch = start(on('watch'));
  await watch.printed(/vacant +no leader is on record\n/);
  expect(readdirSync(directory)).toEqual([]);
  const leader = candidateProcess(directory, 'x', 'a');
  await leader.printed(/leading 1/);
  await watch.printed(/led +a +token 1/);
  expect(watch.stdout.match(/no leader is on record/g)).toHaveLength(1);
});

test('a seat that is closed to all candidates is shown as reserved', async () => {
  const { directory, on, run } = onStore();
  const held = start([...on('run', '--hold-at-least', '10m'), '--', 'true']);
  await until(async () => (await run('status')).stdout.includes('reserved'));
  held.child.kill('SIGTERM');
  await held.result;
  expect((await run('status')).stdout).toMatch(/^reserved +until \S+ \S+ \((9m \d+s|10m) more\)$/m);
  expect(jsonLines((await run('status', '--json')).stdout)).toMatchObject([
    { state: 'vacant', reservedUntil: iso, reservedFor: null },
  ]);
  expect(readdirSync(directory)).toEqual(['x']);
});

test('a leader that was killed is seen to be dead at once', async () => {
  const { directory, run } = onStore();
  const leader = candidateProcess(directory, 'x', 'a');
  await leader.printed(/leading 1/);
  leader.child.kill('SIGKILL');
  await leader.result;
  expect((await run('status')).stdout).toContain('vacant (the last leader is dead)');
  expect((await run('status', '--exit-code')).code).toBe(1);
  expect((await run('leader')).code).toBe(1);
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('watch ended by %s ends with %i and no words', async (signal, code) => {
  const { directory, on } = onStore();
  const watch = start(on('watch', '--json'));
  await watch.printed(/\n/);
  expect(jsonLines(watch.stdout)).toEqual([
    {
      ...{ time: iso, election: 'x', state: 'vacant' },
      leader: null,
      ready: null,
      token: null,
      since: null,
    },
  ]);
  watch.child.kill(signal);
  const { stderr, ...result } = await watch.result;
  expect(result).toMatchObject({ code });
  expect(jsonLines(stderr)).toEqual([
    { note: { code: 'NOT_THERE', message: `the directory ${directory}/x does not exist (yet)` } },
  ]);
  expect(readdirSync(directory)).toEqual([]);
});

test('the reader of our output may go away', async () => {
  const { on, run } = onStore();
  await run('init');
  const watch = start(on('watch'));
  await watch.printed(/vacant/);
  watch.child.stdout?.destroy();
  await run('end', '--force');
  expect(await watch.result).toMatchObject({ code: 0, stderr: '' });
});

test('output that cannot be written is an error, and not a crash', async () => {
  const fullDisk = `process.stdout.write = () => process.stdout.emit('error',
    Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }));`;
  const preload = `data:text/javascript,${encodeURIComponent(fullDisk)}`;
  expect(await new Program(['--import', preload, bin, '--version']).result).toEqual({
    code: 74,
    stdout: '',
    stderr: 'incumbent: the output cannot be written: ENOSPC: no space left on device, write\n',
  });
});

test('the store comes from --store, INCUMBENT_STORE or a relative URL', async () => {
  const directory = scratch();
  const status = (args: string[], env: Record<string, string> = {}) =>
    incumbent(['status', '-e', 'x', '--json', ...args], { cwd: directory, env });
  const url = `file:${join(directory, 'store')}`;
  for (const result of [
    await status(['--store', url]),
    await status([], { INCUMBENT_STORE: url }),
    await status(['--store', 'file:./store'], { INCUMBENT_STORE: 'file:/elsewhere' }),
  ]) {
    expect(jsonLines(result.stdout)).toMatchObject([{ store: url, state: 'vacant' }]);
  }
});

test('the default store is the state directory, or is refused where that is not shared', async () => {
  const directory = scratch();
  const place = { env: { XDG_STATE_HOME: directory } };
  const result = await incumbent(['init', '-e', 'x', '--json'], place);
  if (detectIsolation(systemProbe({}, process.platform)) === undefined) {
    const store = `file:${join(directory, 'incumbent')}`;
    expect(jsonLines(result.stdout)).toMatchObject([{ store, ready: true }]);
  } else {
    expect(result.code).toBe(64);
    expect(jsonLines(result.stderr)).toMatchObject([{ error: { code: 'NO_DEFAULT_STORE' } }]);
  }
  const pod = { env: { ...place.env, KUBERNETES_SERVICE_HOST: '10.0.0.1' } };
  const refused = await incumbent(['init', '-e', 'x'], pod);
  expect(refused.code).toBe(64);
  expect(refused.stderr).toContain('a Kubernetes pod (KUBERNETES_SERVICE_HOST is set)');
});

test('bad input ends with 64, a store that cannot be used with 69, and no stack', async () => {
  const directory = scratch();
  const blocked = join(directory, 'a-file');
  writeFileSync(blocked, '');
  const status = (...args: string[]) => incumbent(['status', ...args]);
  for (const [result, code, words] of [
    [await status(), 64, 'status needs -e, --election <name>'],
    [await status('-e', '../x', '--store', `file:${directory}`), 64, 'must not contain "/"'],
    [await status('-e', 'x', '--store', directory), 64, `write file:${directory}`],
    [await status('-e', 'x', '--store', 'memory:'), 64, 'inside this one process'],
    [await status('-e', 'x', '--store', 'nats://h'), 64, 'has the unknown scheme "nats:"'],
    [await status('-e', 'x', '--store', 'zk://h,'), 64, 'has an empty host'],
    [await status('-e', 'x', '--store', `file:${blocked}`), 69, 'ENOTDIR'],
    [await status('-e', 'x', '--store', 'file:/proc/x'), 64, "the kernel's own file system"],
    [await incumbent(['run', '-e', 'x', '--wait', '0', '--', 'true']), 64, 'use --try'],
    [await incumbent(['run', '-e', 'x', '--wait', '0.0s', '--', 'true']), 64, 'use --try'],
    [await incumbent(['nonsense']), 64, 'unknown command'],
    [await incumbent([]), 64, 'Usage:'],
  ] as const) {
    expect(result.stderr).toContain(words);
    expect(result.stderr).not.toMatch(/\n\s+at /);
    expect(result).toMatchObject({ code, stdout: '' });
  }
});

test.runIf(process.platform === 'linux')(
  'run warns of a store that is gone after a boot',
  async () => {
    const directory = mkdtempSync('/dev/shm/incumbent-');
    try {
      const store = `file:${directory}/not/yet`;
      const result = await incumbent(['run', '-e', 'x', '--store', store, '--', 'true']);
      expect(result).toMatchObject({ code: 0 });
      expect(result.stderr).toContain('incumbent: tmpfs is empty after every boot');
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);

test.each([
  ['no-such-command-here', 'exit code 127 (command not found)'],
  ['/dev/null', 'exit code 126 (command cannot be executed)'],
  ['exit 3', 'exit code 3'],
])('a health check says how it failed: %s', async (command, words) => {
  const check = runShellCheck('--health', command, {}, '/', new AbortController().signal);
  await expect(check).rejects.toThrow(`--health ${command}: ${words}`);
});

test('INCUMBENT_DEBUG shows where an error came from', async () => {
  const { stderr } = await incumbent(['status', '-e', 'x', '--store', 'memory:'], {
    env: { INCUMBENT_DEBUG: '1' },
  });
  expect(stderr).toMatch(/\n {4}at .*store-url\.js/);
});

test('a damaged record is named, and left as it is', async () => {
  const { directory, run } = onStore();
  mkdirSync(join(directory, 'x'));
  const record = join(directory, 'x', '0000000000000001');
  writeFileSync(record, 'garbage');
  for (const command of ['status', 'history', 'leader', 'candidates', 'vacate', 'end']) {
    const { code, stderr } = await run(command);
    expect(code).toBe(69);
    expect(stderr).toContain(`${record} is not an election record`);
  }
  const json = await run('status', '--json');
  expect(jsonLines(json.stderr)).toMatchObject([{ error: { code: 'RECORD_DAMAGED' } }]);
  const doctor = await run('doctor', '--watch-loop', '20ms', '--samples', '3');
  expect(doctor.code).toBe(1);
  expect(doctor.stdout).toMatch(new RegExp(`^broken +files +${record}`, 'm'));
  expect(readdirSync(directory)).toEqual(['x']);
});

test('doctor measures, names foreign files and leaves nothing behind', async () => {
  const { directory, run } = onStore();
  await run('end', '--force');
  writeFileSync(join(directory, 'x', 'notes.txt'), '');
  const { code, stdout } = await run('doctor', '--json', '--watch-loop', '20ms', '--samples', '5');
  expect(code).toBe(0);
  const lines = jsonLines(stdout);
  const found = (check: string) => lines.find((line) => line['check'] === check);
  expect(found('store')).toMatchObject({ data: { url: `file:${directory}` } });
  expect(found('file-system')).toMatchObject({ level: 'note' });
  expect(found('free-space')).toMatchObject({ data: { freeBytes: expect.any(Number) } });
  expect(found('files')).toMatchObject({ level: 'warn', data: { foreign: ['notes.txt'] } });
  expect(found('election')).toMatchObject({ data: { state: 'ended' } });
  for (const what of ['reads', 'writes']) {
    expect(found(what)).toMatchObject({ data: { samples: 5, medianMs: expect.any(Number) } });
  }
  expect(found('P3')).toMatchObject({ level: 'ok' });
  expect(lines.at(-1)).toMatchObject({ check: 'result' });
  expect(readdirSync(directory)).toEqual(['x']);
});

test('doctor warns of a store that was not there, and takes away what it made', async () => {
  const directory = scratch();
  const doctor = (...args: string[]) =>
    incumbent(['doctor', '--watch-loop', '20ms', '--samples', '2', ...args]);
  const store = `file:${directory}/a/b`;
  const { code, stdout } = await doctor('-e', 'x', '--store', store);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^warn +store +the directory \S+\/a\/b did not exist/m);
  expect(stdout).toMatch(/^note +files .*never used$/m);
  expect(readdirSync(directory)).toEqual([]);
  expect((await doctor('--store', `file:${directory}`)).stdout).not.toContain('did not exist');
  expect(readdirSync(directory)).toEqual([]);
});

test('doctor that is interrupted leaves nothing behind either', async () => {
  const { directory, on, run } = onStore();
  await run('init');
  const doctor = start(on('doctor', '--samples', '10000'));
  await doctor.printed(/election/);
  doctor.child.kill('SIGINT');
  expect((await doctor.result).code).toBe(130);
  expect(readdirSync(directory)).toEqual(['x']);
});

test('the command of the package `incumbent` is the same command', async () => {
  const other = fileURLToPath(new URL('../../incumbent/bin/incumbent.js', import.meta.url));
  const version = await new Program([other, '--version']).result;
  expect(version).toEqual(await incumbent(['--version']));
  expect(version.code).toBe(0);
  expect((await new Program([other, 'nonsense']).result).code).toBe(64);
});
