// The guard of `--pid` and the processes that it may kill: real ones, and no other.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { utimesSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Deadline } from 'incumbent';
import { expect, onTestFinished, vi } from 'vitest';
import type { ProcessEvents, ServiceProcess } from '../src/agent/process-guard.ts';
import { ProcessGuard } from '../src/agent/process-guard.ts';
import { Guard } from '../src/guard/index.ts';
import { deferred } from '../src/guard/wait.ts';
import type { Lab } from './support/run-process.ts';
import {
  commandLine,
  groupOf,
  isAlive,
  living,
  monotonicMs,
  processes,
  test,
  until,
} from './support/run-process.ts';

const { bootMs, lookAt, isStale } = createRequire(import.meta.url)('../guard/process-guard.cjs');
const forever = new AbortController().signal;

/** A guard with belief for an hour. */
async function start(target: Partial<ServiceProcess>, events: Partial<ProcessEvents> = {}) {
  const none = { killed: () => {}, ended: () => {} };
  const process_ = { file: null, pid: null, group: false, ...target };
  const guard = await ProcessGuard.start(process_, 100, { ...none, ...events });
  onTestFinished(() => guard.close());
  guard.belief(inAnHour());
  return guard;
}

function inAnHour(): Deadline {
  const hourMs = 3_600_000;
  const now = { monotonicMs: monotonicMs(), wallMs: Date.now() };
  const monotonic = now.monotonicMs + hourMs;
  return { monotonicMs: monotonic, wallMs: now.wallMs + hourMs, sentAt: now, lostMs: 0 };
}

/** A process of the test, in a group of its own. */
async function sleeper(lab: Lab, script = 'echo up; exec sleep 9999', detached = true) {
  const child = spawn('/bin/sh', ['-c', script], {
    env: lab.env,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached,
  });
  const [text] = await once(child.stdout, 'data');
  return { pid: child.pid!, said: String(text) };
}

test('what cannot be read is no proof of a death', () => {
  const fails = () => {
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
  };
  expect(lookAt(process.pid, fails)).toEqual({ pid: process.pid });
  expect(lookAt(process.pid)).toMatchObject({ pid: process.pid });
  // The largest number that Linux gives is 2 ** 22.
  expect(lookAt(2 ** 22 + 1)).toBeUndefined();
});

test('a file that is older than the process means another one', () => {
  const bootMs = 1_000_000;
  const found = { startedAt: '50000' };
  expect(isStale(found, 1_499_000, bootMs)).toBe(false);
  expect(isStale(found, 1_400_000, bootMs)).toBe(true);
  expect(isStale({}, 0, bootMs)).toBe(false);
  expect(isStale(found, 0, undefined)).toBe(false);
});

test('a clock that is set makes no file older than its process', async ({ lab }) => {
  const says = (seconds: number) => bootMs(() => `cpu 1\nbtime ${seconds}\n`);
  const first = says(1_000);
  expect(says(900_000_000)).toBe(first);
  expect(says(900)).toBe(900_000);
  const { pid } = await sleeper(lab);
  const file = lab.write('pid', `${pid}\n`);
  const guard = await start({ file });
  await guard.arm(forever);
  // As if the clock had been set forward since.
  utimesSync(file, 1_000, 1_000);
  expect(await guard.isSame(forever)).toBe(true);
});

test('a file that cannot be read is no proof: it is read again', async ({ lab }) => {
  const [first, second] = [await sleeper(lab), await sleeper(lab)];
  const file = lab.write('pid', `${first.pid}\n`);
  const killed = vi.fn();
  const guard = await start({ file }, { killed });
  await guard.arm(forever);
  // As a service does that writes its number.
  lab.write('pid', '');
  const killing = guard.kill(true);
  await until('the first one is dead', () => !isAlive(first.pid));
  expect(killed).not.toHaveBeenCalled();
  lab.write('pid', `${second.pid}\n`);
  await killing;
  expect(isAlive(second.pid)).toBe(false);
  // Also when nobody waits for it any more.
  expect(killed).toHaveBeenCalledOnce();
});

test('a process that could not be killed is told before anything is armed, with the way out', async ({
  lab,
}) => {
  const { pid } = await sleeper(lab);
  const whyNot = async (target: Partial<ServiceProcess>) => {
    const guard = await start(target);
    const found = await guard.find(forever).then(
      () => 'found',
      (error: Error) => error.message,
    );
    await expect(guard.kill(true)).rejects.toThrow(/knows no process/);
    return found;
  };
  expect(await whyNot({ file: lab.path('none') })).toMatch(
    /^--pid: .*none cannot be read \(ENOENT\): let the service write its number there/,
  );
  expect(await whyNot({ file: lab.write('words', 'abc\n') })).toMatch(
    /words holds no number of a process: let the service write/,
  );
  expect(await whyNot({ pid: 2 ** 22 + 1 })).toMatch(
    /does not run: give the number of the service/,
  );
  const gone = lab.write('gone', `${2 ** 22 + 1}\n`);
  expect(await whyNot({ file: gone })).toMatch(/the process that .*gone names does not run/);
  expect(await whyNot({ file: lab.write('pid', `${pid}\n`) })).toBe('found');
});

test('a look for the process does not disturb an arming under way', async ({ lab }) => {
  const { pid } = await sleeper(lab);
  const guard = await start({ pid });
  const arming = guard.arm(forever);
  const [first, second] = [guard.find(forever), guard.find(forever)];
  void first.catch(() => {});
  await second;
  expect(await arming).toBe(pid);
  expect(await guard.isSame(forever)).toBe(true);
});

test('a stale file: its process is not taken, and not killed later', async ({ lab }) => {
  const other = await sleeper(lab);
  const service = await sleeper(lab);
  const file = lab.write('pid', `${other.pid}\n`);
  utimesSync(file, 1_000, 1_000);
  const guard = await start({ file });
  await expect(guard.arm(forever)).rejects.toThrow(/pid is older than process \d+, so it means/);
  lab.write('pid', `${service.pid}\n`);
  expect(await guard.arm(forever)).toBe(service.pid);
  lab.write('pid', `${other.pid}\n`);
  utimesSync(file, 1_000, 1_000);
  await guard.kill(true);
  expect([isAlive(service.pid), isAlive(other.pid)]).toEqual([false, true]);
  await expect(guard.kill(true)).rejects.toThrow(/knows no process/);
});

test('a service that was restarted under the same file: noticed, and killed if it may be active', async ({
  lab,
}) => {
  const [first, second, third] = [await sleeper(lab), await sleeper(lab), await sleeper(lab)];
  const file = lab.write('pid', `${first.pid}\n`);
  const ended = deferred<void>();
  const guard = await start({ file }, { ended: ended.resolve });
  await guard.arm(forever);
  lab.write('pid', `${second.pid}\n`);
  process.kill(first.pid, 'SIGKILL');
  await ended.promise;
  expect(await guard.isSame(forever)).toBe(false);
  // Without a doubt it has got no become-active.
  await guard.kill(false);
  expect(isAlive(second.pid)).toBe(true);
  await guard.arm(forever);
  expect(await guard.isSame(forever)).toBe(true);
  lab.write('pid', `${third.pid}\n`);
  await guard.kill(true);
  expect([isAlive(second.pid), isAlive(third.pid)]).toEqual([false, false]);
});

const onLinux = test.skipIf(process.platform !== 'linux');

onLinux('--pid-group: nothing is gone while a worker lives', async ({ lab }) => {
  const { pid } = await sleeper(lab, 'sleep 9999 & sleep 9999 & echo up; exec sleep 9999');
  const guard = await start({ pid, group: true });
  await guard.arm(forever);
  process.kill(pid, 'SIGKILL');
  await until('the leader is dead', () => !isAlive(pid));
  expect(living(pid)).toHaveLength(2);
  await guard.kill(true);
  expect(living(pid)).toEqual([]);
});

onLinux('--pid-group: the group of the agent is refused', async ({ lab }) => {
  const { pid } = await sleeper(lab, undefined, false);
  expect(groupOf(pid)).toBe(groupOf(process.pid));
  const guard = await start({ pid, group: true });
  await expect(guard.arm(forever)).rejects.toThrow(/is that of the agent too/);
});

onLinux('--pid-group: a group that must not be killed is never gone', async ({ lab }) => {
  const first = await sleeper(lab);
  const ours = await sleeper(lab, undefined, false);
  const file = lab.write('pid', `${first.pid}\n`);
  const killed = vi.fn();
  const guard = await start({ file, group: true }, { killed });
  await guard.arm(forever);
  lab.write('pid', `${ours.pid}\n`);
  const killing = guard.kill(true);
  await until('the first one is dead', () => !isAlive(first.pid));
  // Time for the guard to look again.
  for (let turn = 0; turn < 300; turn += 1) await guard.isSame(forever);
  expect(killed).not.toHaveBeenCalled();
  lab.write('pid', `${first.pid}\n`);
  await killing;
  expect(isAlive(ours.pid)).toBe(true);
});

onLinux('also the guard of `run`: without descriptors nothing counts as gone', async ({ lab }) => {
  // timeout(1) leaves the group, and stays in the session. The leader of both ends.
  const { pid } = await sleeper(lab, 'timeout 9999 sleep 9999 & echo up');
  await until('the group is gone', () => living(pid).length === 0);
  const file = fileURLToPath(new URL('../guard/guard.cjs', import.meta.url));
  const script = `
    const { groupIsGone } = require(${JSON.stringify(file)});
    const { openSync } = require('node:fs');
    try { for (;;) openSync('/dev/null'); } catch {}
    process.exit(groupIsGone(${pid}, true) ? 1 : 0);`;
  const limited = ['-c', 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, script];
  const [code] = await once(spawn('/bin/sh', limited, { env: lab.env, stdio: 'inherit' }), 'exit');
  expect(code).toBe(0);
});

test('a guard that is stopped is noticed, and kills when it wakes up', async ({ lab }) => {
  const { pid } = await sleeper(lab);
  const guard = await start({ pid });
  await guard.arm(forever);
  const own = processes().filter(({ parent }) => parent === process.pid);
  const stopped = own.find(({ pid: one }) => commandLine(one).includes('process-guard.cjs'))!;
  process.kill(stopped.pid, 'SIGSTOP');
  expect((await guard.lost).message).toMatch(/was silent while it was needed/);
  await expect(guard.kill(true)).rejects.toThrow(/was silent while it was needed/);
  guard.close();
  process.kill(stopped.pid, 'SIGCONT');
  await until('the service is dead', () => !isAlive(pid));
  await until('the guard has ended', () => !isAlive(stopped.pid));
});

test('the guard of a command that does not die is left alone, and goes on killing', async ({
  lab,
}) => {
  const guard = await Guard.start({ stopMarginMs: 1_000, killMarginMs: 100 });
  guard.belief(inAnHour());
  const env = lab.env as Record<string, string>;
  const program = await guard.prepare({ program: 'sleep', args: ['9999'], env, cwd: '/' });
  await program.go();
  process.kill(guard.pid, 'SIGSTOP');
  onTestFinished(() => {
    if (isAlive(guard.pid)) process.kill(guard.pid, 'SIGKILL');
  });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  guard.abandon();
  // Longer than the guard of a program that ends would be waited for.
  await vi.advanceTimersByTimeAsync(60_000);
  vi.useRealTimers();
  await new Promise((resolve) => setImmediate(resolve));
  expect(isAlive(guard.pid)).toBe(true);
  process.kill(guard.pid, 'SIGCONT');
  await until('the command is dead', () => !isAlive(program.pid));
  await until('the guard has ended', () => !isAlive(guard.pid));
});
