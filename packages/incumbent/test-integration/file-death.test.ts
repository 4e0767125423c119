import type { ChildProcess, SpawnSyncOptions } from 'node:child_process';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openFileLeaseStore } from '../src/backends/file/store.ts';
import type { Actor } from '../src/record/record.ts';
import { buildFileProcess, temporaryDirectory } from './support/file-build.ts';

const forever = new AbortController().signal;
const build = temporaryDirectory();
let program: readonly string[] = [];
const store = openFileLeaseStore(build.path, 'e');
const children: ChildProcess[] = [];

beforeAll(() => {
  program = buildFileProcess(`${build.path}/program`);
});
afterAll(() => build.remove());
afterEach(() => {
  // Each leads a group of its own.
  for (const { pid } of children.splice(0)) {
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL');
    } catch {
      // It has gone.
    }
  }
});

/** A shell that leads a process group of its own, and the first line it prints. */
async function shell(script: string): Promise<{ child: ChildProcess; pid: number; line: string }> {
  const child = spawn('sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [line] = await once(createInterface({ input: child.stdout! }), 'line');
  return { child, pid: child.pid!, line: String(line) };
}

async function describe(pid: number, group?: number): Promise<Actor> {
  return (await store.describe?.(group === undefined ? { pid } : { pid, group }))!;
}

const provesGone = (...actors: Actor[]) => store.provesGone?.(actors);

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

test('a live process is not gone, a killed one is', async () => {
  const { child, pid } = await shell('echo up; exec sleep 1000');
  const actor = await describe(pid);
  expect(provesGone(actor)).toBe(false);
  await kill(child);
  expect(provesGone(actor)).toBe(true);
  expect(provesGone(actor, await describe(process.pid))).toBe(false);
});

test.runIf(process.platform === 'linux')('a zombie is gone, and its group with it', async () => {
  // The parent has become a program that waits for no child. The group has only the zombie in it.
  const { line } = await shell('setsid sleep 1000 & echo $!; exec sleep 1000');
  const pid = Number(line);
  while (!readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('sleep')) {
    await new Promise(setImmediate);
  }
  const actor = await describe(pid, pid);
  expect(provesGone(actor)).toBe(false);
  process.kill(pid, 'SIGKILL');
  while (!readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')) {
    await new Promise(setImmediate);
  }
  expect(() => process.kill(-pid, 0)).not.toThrow();
  // Nothing is proved while other processes begin on this machine.
  while (!provesGone(actor)) await new Promise(setImmediate);
});

test.runIf(process.platform === 'linux')('a zombie whose threads live on is not gone', async () => {
  // The main thread ends, a detached one stays.
  const program =
    'import ctypes,threading,time,sys\n' +
    'threading.Thread(target=time.sleep,args=(1000,)).start()\n' +
    'print("up",flush=True)\n' +
    'ctypes.CDLL(None).pthread_exit(None)\n';
  const { pid } = await shell(`exec python3 -c '${program}'`);
  const actor = await describe(pid);
  while (!readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')) {
    await new Promise(setImmediate);
  }
  expect(provesGone(actor)).toBe(false);
});

test('a group with a surviving grandchild is not gone', async () => {
  const { child, pid } = await shell('sleep 1000 & echo $!; exec sleep 1000');
  const [alone, grouped] = [await describe(pid), await describe(pid, pid)];
  await kill(child);
  expect(provesGone(alone)).toBe(true);
  expect(provesGone(grouped)).toBe(false);
});

test.runIf(process.platform === 'linux')(
  'a session is not gone before a process that has left its group',
  async () => {
    const { child, pid, line } = await shell(
      `timeout 1000 sh -c 'echo $$; exec sleep 1000' & exec sleep 1000`,
    );
    const grouped = await describe(pid, pid);
    const whole = (await store.describe?.({ pid, group: pid, session: pid }))!;
    try {
      await kill(child);
      // The group is empty. Until it has been reaped, forks may disturb a walk.
      while (!provesGone(grouped)) await new Promise(setImmediate);
      expect(provesGone(whole)).toBe(false);
    } finally {
      process.kill(Number(line), 'SIGKILL');
    }
    while (!provesGone(whole)) await new Promise(setImmediate);
  },
);

test('a group whose processes have all gone is gone', async () => {
  const { child, pid, line } = await shell(
    'sleep 1000 & echo $!; wait; echo reaped; exec sleep 1000',
  );
  const grouped = await describe(pid, pid);
  const reaped = once(createInterface({ input: child.stdout! }), 'line');
  process.kill(Number(line), 'SIGKILL');
  await reaped;
  expect(provesGone(grouped)).toBe(false);
  await kill(child);
  expect(provesGone(grouped)).toBe(true);
});

test.runIf(process.platform === 'linux')(
  'a number that was given to another process proves the first one dead',
  async () => {
    const { pid } = await shell('echo up; exec sleep 1000');
    const actor = await describe(pid);
    expect(provesGone({ ...actor, start: String(Number(actor['start']) - 1) })).toBe(true);
    const { start: _, ...unknownStart } = actor;
    expect(provesGone(unknownStart)).toBe(false);
  },
);

test('a dead process of another boot or namespace is a doubt', async () => {
  const { child, pid } = await shell('echo up; exec sleep 1000');
  const actor = await describe(pid);
  await kill(child);
  expect(provesGone(actor)).toBe(true);
  for (const field of ['boot', 'pidNamespace', 'timeNamespace']) {
    expect(provesGone({ ...actor, [field]: 'another' }), field).toBe(false);
  }
});

test.runIf(process.platform === 'linux')(
  'in a pid namespace that /proc does not show, start times are not trusted',
  async (context) => {
    const flags = ['--user', '--map-root-user', '--pid', '--fork'];
    const { status, stderr, error } = spawnSync('unshare', [...flags, 'true'], {
      encoding: 'utf8',
    });
    if (status !== 0) return context.skip(`unshare --pid: ${error?.message ?? stderr}`);
    const args = [...flags, process.execPath, ...program, 'describe', build.path];
    const inside = execFileSync('unshare', args, { encoding: 'utf8' });
    const { actor, gone } = JSON.parse(inside) as { actor: Actor; gone: boolean };
    expect(actor['pid']).toBe(1);
    expect(actor).not.toHaveProperty('start');
    expect(gone).toBe(false);
    // Our process 1 is another one. All that we know of its namespace is that it is not ours.
    expect(provesGone({ ...actor, pid: 2 ** 22 + 1 })).toBe(false);
    expect(actor['pidNamespace']).not.toBe((await describe(process.pid))['pidNamespace']);
  },
);

test.runIf(process.platform === 'linux')(
  'a session is not gone where /proc hides the processes of others',
  (context) => {
    const flags = ['--mount', '--pid', '--fork', '--kill-child'];
    const trial = ['sh', '-c', 'mount -t proc -o hidepid=2 proc /proc'];
    const { status, stderr, error } = spawnSync('unshare', [...flags, ...trial], {
      encoding: 'utf8',
    });
    if (status !== 0) return context.skip(`mounting /proc anew: ${error?.message ?? stderr}`);
    for (const path of [build.path, `${build.path}/program`]) chmodSync(path, 0o755);
    const behind = (mountOptions: string) => {
      const command = [process.execPath, ...program, 'sessionBehind', build.path, mountOptions];
      return JSON.parse(
        execFileSync('unshare', [...flags, ...command], { encoding: 'utf8' }),
      ) as unknown;
    };
    // Another user sees no process of the session there, as if all of them were gone.
    expect(behind('rw,hidepid=2')).toEqual({
      hasSession: true,
      whileItLives: false,
      afterwards: false,
    });
    expect(behind('rw')).toEqual({ hasSession: true, whileItLives: false, afterwards: true });
  },
);

test('another process of this machine comes to the same result', async () => {
  const { child, pid } = await shell('echo up; exec sleep 1000');
  const actor = await describe(pid);
  const elsewhere = () => {
    const args = [...program, 'provesGone', build.path, JSON.stringify(actor)];
    return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as unknown;
  };
  expect(elsewhere()).toEqual({ gone: false });
  await kill(child);
  expect(elsewhere()).toEqual({ gone: true });
});

/**
 * A group whose leader waits to be killed. A zombie stays in it, and a process forks and ends
 * for ever, so that it never has the same number for long. All other processes take notice of
 * ends at once.
 */
const restlessGroup = `
import ctypes, os, signal, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
leader_is_up, up = os.pipe()
leader = os.fork()
if leader == 0:
    os.setpgid(0, 0)
    os.write(up, b"x")
    if os.fork() == 0:
        while os.getppid() > 0:
            if os.fork(): os._exit(0)
    time.sleep(1000)
os.read(leader_is_up, 1)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
zombie_is_in, enter = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setpgid(0, leader)
        os.write(enter, b"x")
        os._exit(0)
    os.read(zombie_is_in, 1)
    print(leader, flush=True)
    time.sleep(1000)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
time.sleep(1000)
`;

test.runIf(process.platform === 'linux')(
  'a group whose last process forks and ends all the time is not gone',
  async (context) => {
    if (spawnSync('python3', ['-c', '']).status !== 0) return context.skip('no python3');
    const { line } = await shell(`exec python3 -c '${restlessGroup}'`);
    const leader = Number(line);
    try {
      const [alone, grouped] = [await describe(leader), await describe(leader, leader)];
      process.kill(leader, 'SIGKILL');
      while (!provesGone(alone)) await new Promise(setImmediate);
      for (let i = 0; i < 500; i += 1) expect(provesGone(grouped)).toBe(false);
    } finally {
      process.kill(-leader, 'SIGKILL');
    }
  },
);

test('a process of another user is not gone', async () => {
  let actor = await describe(1);
  let run: SpawnSyncOptions = {};
  if (process.getuid?.() === 0) {
    // Root may signal every process, so another user has to ask.
    actor = await describe((await shell('echo up; exec sleep 1000')).pid);
    run = { uid: 65_534, gid: 65_534 };
    for (const path of [build.path, `${build.path}/program`]) chmodSync(path, 0o755);
  }
  // Without the start time kill(2) decides alone, and it says EPERM.
  const { start: _, ...unknownStart } = actor;
  const args = [...program, 'provesGone', build.path, JSON.stringify(unknownStart)];
  const { stdout, stderr } = spawnSync(process.execPath, args, run);
  expect(String(stdout), String(stderr)).toBe('{"gone":false}\n');
});

test('a candidate that was killed is not listed any more', async () => {
  const enlist = async (id: string) => {
    const child = spawn(process.execPath, [...program, 'enlist', build.path, id], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    await once(createInterface({ input: child.stdout }), 'line');
    return child;
  };
  const a = await enlist('a');
  await enlist('b');
  const ids = async () => (await store.list?.(forever))?.map(({ id }) => id);
  expect(await ids()).toEqual(['a', 'b']);
  await kill(a);
  expect(await ids()).toEqual(['b']);
});
