import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Instant } from 'incumbent';
import { deadlineAfter } from 'incumbent';
import { expect, onTestFinished, test } from 'vitest';
import { gate } from '../src/guard/gate.ts';
import { guardFile } from '../src/guard/guard-file.ts';
import type { ToGuard } from '../src/guard/protocol.ts';
import { boundMs, groupDies, kill, monotonicMs, scratch, until } from './guard-helpers.ts';

// The processes here have a wall clock that the test sets. The monotonic clock is the machine's:
// for a process, the end of a suspension is a wall clock that has jumped ahead of it.

const long = 600_000;

/** A module to be loaded before others: says in `looks` how often the wall clock was read. */
class WallClock {
  readonly preload: string;
  readonly #offset: string;

  constructor() {
    const dir = scratch();
    this.preload = join(dir, 'clock.cjs');
    this.#offset = join(dir, 'offset');
    this.stepTo(0);
    const source = `
      const { appendFileSync, readFileSync } = require('node:fs');
      const now = Date.now;
      Date.now = () => {
        const offset = Number(readFileSync(${JSON.stringify(this.#offset)}, 'utf8'));
        appendFileSync(${JSON.stringify(join(dir, 'looks'))} + offset, '.');
        return now() + offset;
      };`;
    writeFileSync(this.preload, source);
  }

  stepTo(offsetMs: number): void {
    writeFileSync(this.#offset, String(offsetMs));
  }

  /** Sets the clock, and waits until it was seen. */
  async moveTo(offsetMs: number): Promise<void> {
    this.stepTo(offsetMs);
    await this.seen(offsetMs);
  }

  /** Resolves when the clock that is off by so much was looked at a few times. */
  async seen(offsetMs: number): Promise<void> {
    const file = join(this.#offset, `../looks${offsetMs}`);
    const looks = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    await until(`the clock at ${offsetMs} is seen`, () => looks() > 5);
  }
}

function now(): Instant {
  return { monotonicMs: monotonicMs(), wallMs: Date.now() };
}

/** A guard that was told nothing yet. */
function speaking(clock: WallClock) {
  const guard = spawn(process.execPath, ['-r', clock.preload, guardFile], {
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'pipe'],
  });
  onTestFinished(() => kill(guard.pid, 'SIGKILL'));
  const control = guard.stdio[3] as Duplex;
  const said: Record<string, unknown>[] = [];
  createInterface({ input: control }).on('line', (line) => {
    if (line !== '') said.push(JSON.parse(line));
  });
  const tell = (message: ToGuard): boolean => control.write(`${JSON.stringify(message)}\n`);
  const heard = async (say: string): Promise<Record<string, unknown>> => {
    await until(`the guard says ${say}`, () => said.some((one) => one['say'] === say));
    return said.find((one) => one['say'] === say)!;
  };
  return { tell, heard, said };
}

/** A guard with a program that only KILL ends. */
async function guarding(clock: WallClock, stopMarginMs = 1_000) {
  const { tell, heard, said } = speaking(clock);
  tell({ do: 'margins', stopMarginMs, killMarginMs: 300 });
  const sentAt = now();
  tell({ do: 'belief', deadline: deadlineAfter(sentAt, long) });
  const env = { PATH: process.env['PATH'] ?? '' };
  const runsOn = join(scratch(), 'runs');
  const script = `trap '' TERM; : > ${runsOn}; sleep 1000; sleep 1000`;
  const { argv } = gate('/bin/sh', ['-c', script], env);
  tell({ do: 'prepare', id: 1, argv, env, cwd: '/' });
  const group = Number((await heard('prepared'))['pid']);
  onTestFinished(() => kill(-group, 'SIGKILL'));
  tell({ do: 'go', id: 1 });
  await heard('opened');
  // Before that TERM would end it.
  await until('the program ignores TERM', () => existsSync(runsOn));
  const runs = () => !said.some((one) => one['say'] === 'exited');
  return { sentAt, group, runs, tell, heard };
}

test('the guard sees a suspension after the wall clock was set back', async () => {
  const clock = new WallClock();
  const { group, runs, heard } = await guarding(clock);
  await clock.moveTo(-10 * long);
  expect(runs()).toBe(true);
  // Suspended for longer than belief lasts; by the wall clock's deadline there would be much left.
  clock.stepTo(-8 * long);
  expect(await heard('exited')).toMatchObject({ because: 'belief-over' });
  await groupDies(group);
});

test('the guard remembers a suspension when the wall clock is set back after it', async () => {
  const clock = new WallClock();
  const { group, runs, heard } = await guarding(clock);
  await clock.moveTo(0.6 * long);
  await clock.moveTo(-1);
  expect(runs()).toBe(true);
  // Suspended again: together for longer than belief lasts.
  clock.stepTo(0.6 * long - 1);
  expect(await heard('exited')).toMatchObject({ because: 'belief-over' });
  await groupDies(group);
});

test('the guard remembers it for a confirmation that was under way', async () => {
  const clock = new WallClock();
  const { sentAt, group, runs, tell, heard } = await guarding(clock);
  await clock.moveTo(0.6 * long);
  await clock.moveTo(-1);
  // The supervisor was not awake to see any of it.
  const later = { monotonicMs: sentAt.monotonicMs + 1, wallMs: sentAt.wallMs + 1 };
  tell({ do: 'belief', deadline: deadlineAfter(later, long) });
  await clock.moveTo(-2);
  expect(runs()).toBe(true);
  clock.stepTo(0.6 * long - 2);
  expect(await heard('exited')).toMatchObject({ because: 'belief-over' });
  await groupDies(group);
});

test('the guard judges by both clocks how long a program that was told to stop may take', async () => {
  const clock = new WallClock();
  const { group, runs, tell, heard } = await guarding(clock, 0.5 * long);
  // Less than G is left: TERM, and KILL when belief - K has come, as it is now.
  await clock.moveTo(0.6 * long);
  // Belief that comes back belongs to another term.
  tell({ do: 'belief', deadline: deadlineAfter(now(), 10 * long) });
  await clock.moveTo(-1);
  expect(runs()).toBe(true);
  clock.stepTo(0.6 * long - 1);
  expect(await heard('exited')).toMatchObject({ because: 'belief-over' });
  await groupDies(group);
});

/** A process with a watchdog; with SIGUSR2 it has a confirmation that was sent at its start. */
function watched(clock: WallClock) {
  const [watchdog, deadlines] = ['core/watchdog.js', 'base/deadline.js'].map((file) =>
    JSON.stringify(fileURLToPath(new URL(`../../incumbent/dist/${file}`, import.meta.url))),
  );
  const script = `
    import { startWatchdog } from ${watchdog};
    import { deadlineAfter } from ${deadlines};
    const dog = startWatchdog((error) => { throw error; });
    const [seconds, nanoseconds] = process.hrtime();
    const monotonicMs = seconds * 1e3 + nanoseconds / 1e6;
    const wallMs = Date.now();
    const update = (ms) => {
      const sentAt = { monotonicMs: monotonicMs + ms, wallMs: wallMs + ms };
      dog.update(deadlineAfter(sentAt, ${long}));
    };
    update(0);
    process.on('SIGUSR2', () => update(1));
    setTimeout(() => {}, ${boundMs});`;
  const main = join(scratch(), 'main.mjs');
  writeFileSync(main, script);
  const args = ['-r', clock.preload, main];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  onTestFinished(() => kill(child.pid, 'SIGKILL'));
  return { child, exited: once(child, 'exit') };
}

test('the watchdog sees a suspension after the wall clock was set back', async () => {
  const clock = new WallClock();
  const { exited } = watched(clock);
  await clock.seen(0);
  await clock.moveTo(-10 * long);
  clock.stepTo(-8 * long);
  expect(await exited).toEqual([null, 'SIGKILL']);
});

test('the watchdog remembers a suspension when the wall clock is set back after it', async () => {
  const clock = new WallClock();
  const { child, exited } = watched(clock);
  await clock.seen(0);
  await clock.moveTo(0.6 * long);
  await clock.moveTo(-1);
  // Also for a confirmation that was under way.
  child.kill('SIGUSR2');
  await clock.moveTo(-2);
  expect(child.exitCode ?? child.signalCode).toBe(null);
  clock.stepTo(0.6 * long - 2);
  expect(await exited).toEqual([null, 'SIGKILL']);
});

test('a guard that was not told its margins starts no program', async () => {
  const { tell, heard } = speaking(new WallClock());
  tell({ do: 'belief', deadline: deadlineAfter(now(), long) });
  const { argv } = gate('/bin/sh', ['-c', 'sleep 1000'], {});
  tell({ do: 'prepare', id: 1, argv, env: {}, cwd: '/' });
  expect(await heard('failed')).toMatchObject({ id: 1, reason: 'belief is over' });
});
