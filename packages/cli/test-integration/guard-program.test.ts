import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { groupIsGone } from '../src/guard/group.ts';
import type { SupervisorOptions } from './guard-helpers.ts';
import {
  appears,
  groupDies,
  isAlive,
  kill,
  living,
  processes,
  recorder,
  records,
  Supervisor,
  scratch,
  until,
} from './guard-helpers.ts';

const long = 600_000;
const node: string = process.execPath;
const linux: boolean = process.platform === 'linux';

async function ready(options: SupervisorOptions = {}, guard: object = {}): Promise<Supervisor> {
  const supervisor = new Supervisor(options);
  await supervisor.start(guard);
  await supervisor.believe(long);
  return supervisor;
}

test.each([
  ['exit 0', { code: 0, signal: null }],
  ['exit 42', { code: 42, signal: null }],
  ['kill -KILL $$', { code: null, signal: 'SIGKILL' }],
  ['kill -SEGV $$', { code: null, signal: 'SIGSEGV' }],
])('%s is reported as it is', async (script, exit) => {
  const supervisor = await ready();
  await supervisor.run('sh', ['-c', `ulimit -c 0; ${script}`]);
  expect(await supervisor.exited()).toMatchObject({ ...exit, because: 'itself' });
  await supervisor.event('gone');
});

test('programs run one after the other, each with its own end', async () => {
  const supervisor = await ready();
  const groups: number[] = [];
  for (const code of [1, 2, 3]) {
    groups.push(await supervisor.run('sh', ['-c', `exit ${code}`]));
    expect(await supervisor.exited(code)).toMatchObject({ code, pid: groups.at(-1) });
    await supervisor.event('gone', code);
  }
  expect(new Set(groups).size).toBe(3);
});

test('gone means that no process is left, however long it takes to die', async () => {
  const marker = join(scratch(), 'big');
  const supervisor = await ready();
  // Much memory takes a while to be given back.
  const big = `const b = Buffer.alloc(400_000_000, 1);
    require('node:fs').writeFileSync(process.argv[1], 'x'); setInterval(() => b, 1e6);`;
  const script = '"$1" -e "$2" "$3" & while ! [ -s "$3" ]; do sleep 0.01; done; exit 0';
  await supervisor.run('sh', ['-c', script, 'sh', node, big, marker]);
  expect(await supervisor.exited()).toMatchObject({ code: 0 });
  expect(await supervisor.event('gone')).toMatchObject({ left: 0 });
});

test('a program that is stopped before it was let go never starts', async () => {
  const marker = join(scratch(), 'started');
  const supervisor = await ready();
  await supervisor.prepare('touch', [marker]);
  await supervisor.call('stop', { graceMs: 60_000 });
  await expect(supervisor.call('go')).rejects.toMatchObject({ code: 'ENDED' });
  expect(await supervisor.exited()).toMatchObject({ because: 'stopped' });
  await supervisor.event('gone');
  expect(existsSync(marker)).toBe(false);
});

test('one program at a time, and each let go once', async () => {
  const supervisor = await ready();
  await supervisor.run('sleep', ['1000']);
  await expect(supervisor.prepare('true')).rejects.toMatchObject({ code: 'MISUSE' });
  await expect(supervisor.call('go')).rejects.toMatchObject({ code: 'MISUSE' });
});

test('TERM and INT reach the whole group, HUP, USR1 and USR2 its leader', async () => {
  const file = join(scratch(), 'records');
  const supervisor = await ready();
  await supervisor.run(node, [recorder, file, 'leader,child']);
  await until('both run', () => records(file).filter((one) => one.what === 'start').length === 2);
  const got = (): string[] =>
    records(file)
      .filter((one) => one.what.startsWith('SIG'))
      .map((one) => `${one.role} ${one.what}`)
      .sort();
  for (const name of ['SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGINT', 'SIGTERM']) {
    await supervisor.call('signal', { name });
  }
  const expected = [
    'child SIGINT',
    'child SIGTERM',
    'leader SIGHUP',
    'leader SIGINT',
    'leader SIGTERM',
    'leader SIGUSR1',
    'leader SIGUSR2',
  ];
  await until('all arrived', () => got().length >= expected.length);
  expect(got()).toEqual(expected);
});

test('stop sends TERM, and the program may end by itself', async () => {
  const file = join(scratch(), 'records');
  const supervisor = await ready();
  await supervisor.run(node, [recorder, file, 'leader', 'exit-on-term']);
  await until('it runs', () => records(file).length > 0);
  await supervisor.call('stop', { graceMs: 60_000 });
  expect(await supervisor.exited()).toMatchObject({ code: 7, because: 'stopped' });
});

test('stop sends KILL at its deadline, and a second stop brings that forward', async () => {
  const file = join(scratch(), 'records');
  const supervisor = await ready();
  const group = await supervisor.run(node, [recorder, file, 'leader,child']);
  await until('both run', () => records(file).filter((one) => one.what === 'start').length === 2);
  await supervisor.call('stop', { graceMs: 300_000 });
  await until(
    'TERM came',
    () => records(file).filter((one) => one.what === 'SIGTERM').length === 2,
  );
  await supervisor.call('stop', { graceMs: 100 });
  expect(await supervisor.exited()).toMatchObject({ signal: 'SIGKILL', because: 'stopped' });
  await groupDies(group);
  expect(records(file).filter((one) => one.what === 'SIGTERM')).toHaveLength(2);
});

test('a stop without grace kills at once', async () => {
  const file = join(scratch(), 'records');
  const supervisor = await ready();
  await supervisor.run(node, [recorder, file, 'leader']);
  await until('it runs', () => records(file).length > 0);
  await supervisor.call('stop', { graceMs: 0 });
  expect(await supervisor.exited()).toMatchObject({ signal: 'SIGKILL', because: 'stopped' });
  expect(records(file).filter((one) => one.what === 'SIGTERM')).toEqual([]);
});

test('a program that was stopped with STOP is woken to hear of TERM', async () => {
  const file = join(scratch(), 'records');
  const supervisor = await ready();
  const group = await supervisor.run(node, [recorder, file, 'leader', 'exit-on-term']);
  await until('it runs', () => records(file).length > 0);
  process.kill(-group, 'SIGSTOP');
  await until('all stopped', () => living(group).every((one) => one.state.startsWith('T')));
  await supervisor.call('stop', { graceMs: 60_000 });
  expect(await supervisor.exited()).toMatchObject({ code: 7, because: 'stopped' });
});

test('a guard that gets the signals meant for others stays', async () => {
  const supervisor = new Supervisor();
  const guard = await supervisor.start();
  await supervisor.believe(long);
  for (const name of ['TERM', 'INT', 'HUP', 'QUIT', 'TSTP', 'USR1', 'USR2', 'PIPE', 'ALRM']) {
    process.kill(guard, `SIG${name}`);
  }
  await supervisor.run('sh', ['-c', 'exit 5']);
  expect(await supervisor.exited()).toMatchObject({ code: 5 });
  expect(isAlive(guard)).toBe(true);
});

test('100 MB of output pass through unharmed', async () => {
  const size = 100_000_000;
  const supervisor = await ready({ stdio: ['ignore', 'pipe', 'inherit'] });
  const hash = createHash('sha256');
  let received = 0;
  supervisor.child.stdout!.on('data', (chunk: Buffer) => {
    received += chunk.length;
    hash.update(chunk);
  });
  const write = `
    const { writeSync } = require('node:fs');
    const block = Buffer.alloc(100_000);
    for (let i = 0; i < 1000; i += 1) {
      block.fill(String(i));
      for (let at = 0; at < block.length; ) at += writeSync(1, block, at);
    }`;
  await supervisor.run(node, ['-e', write]);
  expect(await supervisor.exited()).toMatchObject({ code: 0 });
  await until('it has all arrived', () => received >= size);
  const expected = createHash('sha256');
  for (let i = 0; i < 1000; i += 1) expected.update(Buffer.alloc(100_000, String(i)));
  expect(received).toBe(size);
  expect(hash.digest('hex')).toBe(expected.digest('hex'));
});

test('output that goes where ours goes is not made non-blocking by what we do', async () => {
  const dir = scratch();
  const [fifo, marker] = [join(dir, 'fifo'), join(dir, 'writes')];
  execFileSync('mkfifo', [fifo]);
  // One pipe for stdout and stderr, of the supervisor, the guard and the program.
  const supervisor = await ready({ stdio: ['ignore', 'pipe', 'inherit'], by: 'exec "$@" 2>&1' });
  const size = 3_000_000;
  // Where a pipe is non-blocking, a write to a full one fails.
  const write = `read x < "$1"; echo x > "$2"; exec head -c ${size} /dev/zero`;
  await supervisor.run('sh', ['-c', write, 'sh', fifo, marker]);
  await supervisor.call('log', { text: 'said by the supervisor' });
  writeFileSync(fifo, 'go\n');
  await appears(marker);
  let received = 0;
  supervisor.child.stdout!.on('data', (chunk: Buffer) => {
    received += chunk.filter((byte) => byte === 0).length;
  });
  expect(await supervisor.exited()).toMatchObject({ code: 0 });
  await until('it has all arrived', () => received >= size);
  expect(received).toBe(size);
});

test('stdin is /dev/null unless asked for', async () => {
  const file = join(scratch(), 'read');
  const supervisor = await ready({ stdio: ['pipe', 'inherit', 'inherit'] });
  supervisor.child.stdin!.end('what we were sent');
  await supervisor.run('sh', ['-c', 'cat > "$1"; echo . >> "$1"', 'sh', file]);
  await supervisor.event('gone');
  expect(readFileSync(file, 'utf8')).toBe('.\n');
});

test('stdin is passed on when asked for', async () => {
  const file = join(scratch(), 'read');
  const supervisor = await ready({ stdio: ['pipe', 'inherit', 'inherit'] }, { stdin: true });
  await supervisor.run('sh', ['-c', 'cat > "$1"; echo . >> "$1"', 'sh', file]);
  supervisor.child.stdin!.end('what we were sent');
  await supervisor.event('gone');
  expect(readFileSync(file, 'utf8')).toBe('what we were sent.\n');
});

test('arguments arrive as they are', async () => {
  const file = join(scratch(), 'args');
  const args = ['', 'two words', '"', "'", '$HOME', '`date`', '*', '-n', '\\n', 'new\nline', 'ü'];
  const supervisor = await ready();
  const print =
    'require("node:fs").writeFileSync(process.argv[1], JSON.stringify(process.argv.slice(2)))';
  await supervisor.run(node, ['-e', print, '--', file, ...args]);
  await supervisor.event('gone');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(args);
});

test('the environment is what it was given, and is read by no shell on the way', async () => {
  const dir = scratch();
  const [file, trap] = [join(dir, 'env'), join(dir, 'trap')];
  const rc = join(dir, '.bashrc');
  writeFileSync(rc, `echo sourced >> ${trap}`);
  const env = {
    PATH: process.env['PATH']!,
    HOME: dir,
    ENV: rc,
    BASH_ENV: rc,
    SSH_CLIENT: '127.0.0.1 1 2',
    PWD: process.cwd(),
    OLDPWD: '/',
    SHLVL: '7',
    INCUMBENT_TOKEN: '42',
    line: 'a variable of a shell',
    x: '1',
    t: '2',
    i: '3',
    EMPTY: '',
    QUOTED: '\'"$(date)\n',
    'BASH_FUNC_read%%': `() { echo function >> ${trap}; }`,
    'BASH_FUNC_kill%%': `() { echo function >> ${trap}; }`,
    'SPRING.NAME': 'with a dot',
    'npm_config_//registry/:_x': 'odd',
  };
  const supervisor = await ready();
  const print = 'require("node:fs").writeFileSync(process.argv[1], JSON.stringify(process.env))';
  await supervisor.run(node, ['-e', print, '--', file], { env });
  await supervisor.event('gone');
  const got = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
  // macOS adds this to every process.
  delete got['__CF_USER_TEXT_ENCODING'];
  const dropped = supervisor.events.some((event) => event['code'] === 'VARIABLES_DROPPED');
  const kept = Object.entries(env).filter(([name]) => !dropped || /^\w+$/.test(name));
  expect(got).toEqual(Object.fromEntries(kept));
  expect(existsSync(trap)).toBe(false);
});

test('plain environments get nothing added', async () => {
  const file = join(scratch(), 'env');
  const supervisor = await ready();
  const env = { PATH: process.env['PATH']!, A: '1' };
  const print = 'require("node:fs").writeFileSync(process.argv[1], JSON.stringify(process.env))';
  await supervisor.run(node, ['-e', print, '--', file], { env });
  await supervisor.event('gone');
  const got = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
  for (const name of ['__CF_USER_TEXT_ENCODING', 'SHLVL', '_']) delete got[name];
  expect(got).toEqual(env);
});

test('the program starts in the directory it was given', async () => {
  const dir = scratch();
  const supervisor = await ready();
  await supervisor.run('sh', ['-c', 'pwd -P > here'], { cwd: dir });
  await supervisor.event('gone');
  expect(existsSync(join(dir, 'here'))).toBe(true);
});

test.skipIf(!linux)('the program has no file of ours open (reads /proc)', async () => {
  const supervisor = await ready();
  // A plain process shows the files that every process here inherits from the test runner.
  const plain = spawn('sleep', ['1000'], { stdio: 'ignore' });
  onTestFinished(() => kill(plain.pid, 'SIGKILL'));
  const group = await supervisor.run('sleep', ['1000']);
  const isSleep = (pid: number): boolean =>
    readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'sleep';
  await until('both are sleep', () => isSleep(plain.pid!) && isSleep(group));
  expect(readdirSync(`/proc/${group}/fd`)).toEqual(readdirSync(`/proc/${plain.pid}/fd`));
});

test('a program can close and reuse every file', async () => {
  const file = join(scratch(), 'nine');
  const supervisor = await ready();
  const script = 'exec <&- >&- 2>&- 3>"$1" 4>&3 5>&3; echo three >&3; echo five >&5; exit 9';
  await supervisor.run('sh', ['-c', script, 'sh', file]);
  expect(await supervisor.exited()).toMatchObject({ code: 9, because: 'itself' });
  expect(readFileSync(file, 'utf8')).toBe('three\nfive\n');
});

test.skipIf(!linux)('the program ignores and blocks no signal (reads /proc)', async () => {
  const supervisor = await ready({ by: `trap '' HUP USR2; exec "$@"` });
  const group = await supervisor.run('sleep', ['1000']);
  await until('it is sleep', () => readFileSync(`/proc/${group}/comm`, 'utf8').trim() === 'sleep');
  const status = readFileSync(`/proc/${group}/status`, 'utf8');
  for (const field of ['SigIgn', 'SigBlk', 'SigCgt']) {
    expect(status).toMatch(new RegExp(`^${field}:\\s0+$`, 'm'));
  }
});

test('the program has no children that it did not start', async () => {
  const supervisor = await ready();
  const group = await supervisor.run('sleep', ['1000']);
  expect(processes().filter((one) => one.parent === group)).toEqual([]);
  // Its two watchers stay. While they start, one more process is there for a moment.
  await until('two others are left', () => living(group).length === 3);
  expect(processes().filter((one) => one.parent === group)).toEqual([]);
});

test('a program that cannot be run is refused with its reason, and leaves nothing behind', async () => {
  const dir = scratch();
  const plain = join(dir, 'plain');
  writeFileSync(plain, 'not a program');
  const script = join(dir, 'script');
  writeFileSync(script, '#!/nowhere/to/be/found\n');
  chmodSync(script, 0o755);
  const supervisor = await ready();
  const cases: [string, object, number, RegExp][] = [
    ['no-such-program-anywhere', {}, 127, /not found in PATH/],
    ['./none', { cwd: dir }, 127, /no such file/],
    [dir, {}, 126, /directory/],
    [plain, {}, 126, /permission denied/],
    [script, {}, 126, /interpreter \/nowhere\/to\/be\/found/],
    ['true', { cwd: join(dir, 'none') }, 126, /not a directory/],
    ['true', { args: ['x'.repeat(4_000_000)] }, 126, /E2BIG/],
  ];
  for (const [program, { args = [], ...more }, exitCode, message] of cases as [
    string,
    { args?: string[] },
    number,
    RegExp,
  ][]) {
    const error = await supervisor.prepare(program, args, more).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: 'CANNOT_START', exitCode });
    expect((error as Error).message).toMatch(message);
  }
  // The guard is none the worse.
  await supervisor.run('sh', ['-c', 'exit 4']);
  expect(await supervisor.exited()).toMatchObject({ code: 4 });
});

test('without belief nothing is prepared', async () => {
  const supervisor = new Supervisor();
  await supervisor.start();
  await expect(supervisor.prepare('true')).rejects.toMatchObject({ code: 'BELIEF_OVER' });
  await supervisor.believe(900);
  await expect(supervisor.prepare('true')).rejects.toMatchObject({ code: 'BELIEF_OVER' });
});

test('margins that cannot hold are refused with the numbers', async () => {
  const supervisor = new Supervisor();
  await expect(supervisor.start({ stopMarginMs: 500, killMarginMs: 500 })).rejects.toMatchObject({
    code: 'MISUSE',
    message: expect.stringContaining('500 ms'),
  });
});

test('close ends the guard; with a program it is killed first; twice is once', async () => {
  const supervisor = new Supervisor();
  const guard = await supervisor.start();
  await supervisor.believe(long);
  const group = await supervisor.run('sh', ['-c', "trap '' TERM; sleep 1000 & sleep 1000"]);
  const closing = [supervisor.call('close'), supervisor.call('close')];
  await Promise.all(closing);
  expect(isAlive(guard)).toBe(false);
  expect(living(group)).toEqual([]);
  await supervisor.call('close');
  expect(supervisor.events.map(({ event }) => event)).toEqual(['exited', 'gone']);
  await expect(supervisor.prepare('true')).rejects.toThrow();
});

test.skipIf(!linux)(
  'dead processes that nobody reaps do not count as alive (reads /proc)',
  async () => {
    const pidFile = join(scratch(), 'pid');
    const supervisor = await ready();
    // Its child moves into a group of its own, and its parent never waits for it. So it stays a
    // zombie, as every orphan does where process 1 does not reap.
    const script = `setsid sh -c 'echo $$ > "$1"; exit' sh "$1" & exec sleep 1000`;
    const group = await supervisor.run('sh', ['-c', script, 'sh', pidFile]);
    await appears(pidFile);
    const zombie = Number(readFileSync(pidFile, 'utf8'));
    const found = (): string | undefined => processes().find((one) => one.pid === zombie)?.state;
    await until('it is a zombie', () => found() === 'Z');
    expect(() => process.kill(-zombie, 0)).not.toThrow();
    expect(groupIsGone(zombie, false)).toBe(false);
    expect(groupIsGone(zombie, true)).toBe(true);
    // Alive, each of them with one thread.
    expect(groupIsGone(group, true)).toBe(false);
  },
);

test.skipIf(!linux)(
  'a dead process that is reaped during the look does not count as alive',
  async () => {
    const child = spawn('true', { detached: true, stdio: 'ignore' });
    await once(child, 'exit');
    const group = child.pid as number;
    const asked = vi.spyOn(process, 'kill');
    onTestFinished(() => asked.mockRestore());
    // The first look found it still.
    asked.mockImplementationOnce(() => true);
    expect(groupIsGone(group, true)).toBe(true);
    expect(asked).toHaveBeenCalledTimes(2);
  },
);

test('a guard takes little more memory than an empty Node process', async () => {
  const empty = spawn(node, ['-e', 'setInterval(() => {}, 1e9); console.log()'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => kill(empty.pid, 'SIGKILL'));
  await new Promise((resolve) => empty.stdout.once('data', resolve));
  const supervisor = new Supervisor();
  const guard = await supervisor.start();
  await supervisor.believe(long);
  await supervisor.run('true');
  await supervisor.event('gone');
  await supervisor.run('sleep', ['1000']);
  expect(residentKiB(guard) - residentKiB(empty.pid!)).toBeLessThan(4 * 1024);
});

function residentKiB(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }));
}
