import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { gate } from '../src/guard/gate.ts';
import { guardFile } from '../src/guard/group.ts';
import type { ToGuard } from '../src/guard/protocol.ts';
import { boundMs, groupDies, kill, monotonicMs, scratch, until } from './guard-helpers.ts';

// What runs here has a wall clock that the test sets, and that it looks at. The monotonic clock is
// the machine's: to a process the end of a suspension is a wall clock that has jumped ahead of it.

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

  /** Resolves when the clock that is off by so much was looked at a few times. */
  async seen(offsetMs: number): Promise<void> {
    const file = join(this.#offset, `../looks${offsetMs}`);
    const looks = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    await until(`the clock at ${offsetMs} is seen`, () => looks() > 20);
  }
}

test('the guard sees a suspension after the wall clock was set back', async () => {
  const clock = new WallClock();
  const guard = spawn(process.execPath, ['-r', clock.preload, guardFile, '1000', '300'], {
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

  tell({ do: 'belief', monotonicMs: monotonicMs() + long, wallMs: Date.now() + long });
  const env = { PATH: process.env['PATH'] ?? '' };
  const { argv } = gate('/bin/sh', ['-c', `trap '' TERM; sleep 1000; sleep 1000`], env);
  tell({ do: 'prepare', id: 1, argv, env, cwd: '/' });
  const group = Number((await heard('prepared'))['pid']);
  onTestFinished(() => kill(-group, 'SIGKILL'));
  tell({ do: 'go', id: 1 });
  await heard('opened');
  clock.stepTo(-10 * long);
  await clock.seen(-10 * long);
  expect(said.some((one) => one['say'] === 'exited')).toBe(false);
  // Suspended for longer than belief lasts; by the wall clock's deadline there would be much left.
  clock.stepTo(-8 * long);
  expect(await heard('exited')).toMatchObject({ because: 'belief-over' });
  await groupDies(group);
});

test('the watchdog sees a suspension after the wall clock was set back', async () => {
  const clock = new WallClock();
  const watchdog = new URL('../../incumbent/dist/watchdog.js', import.meta.url);
  const script = `
    import { startWatchdog } from ${JSON.stringify(fileURLToPath(watchdog))};
    const dog = startWatchdog((error) => { throw error; });
    const [seconds, nanoseconds] = process.hrtime();
    const monotonicMs = seconds * 1e3 + nanoseconds / 1e6 + ${long};
    dog.update({ monotonicMs, wallMs: Date.now() + ${long} });
    setTimeout(() => {}, ${boundMs});`;
  const main = join(scratch(), 'main.mjs');
  writeFileSync(main, script);
  const args = ['-r', clock.preload, main];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  onTestFinished(() => kill(child.pid, 'SIGKILL'));
  const exited = once(child, 'exit');
  await clock.seen(0);
  clock.stepTo(-10 * long);
  await clock.seen(-10 * long);
  clock.stepTo(-8 * long);
  expect(await exited).toEqual([null, 'SIGKILL']);
});
