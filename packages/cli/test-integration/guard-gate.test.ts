import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Shells } from '../src/guard/gate.ts';
import { gate, shells, timersOfSelect } from '../src/guard/gate.ts';
import { groupDies, kill, scratch, sleepers, until, watchers } from './guard-helpers.ts';

// The gate by itself, with the test in the place of guard and supervisor. It runs on every shell of
// this machine that might be /bin/sh on another one.

interface Kind {
  readonly name: string;
  /** Called `sh`, because shells that find themselves called so behave accordingly. */
  readonly path: string;
  readonly args?: readonly string[];
}

const kinds: Kind[] = [
  { name: 'dash', path: '/bin/dash' },
  { name: 'bash', path: '/bin/bash' },
  { name: 'zsh', path: '/bin/zsh' },
  { name: 'busybox', path: '/bin/busybox' },
  { name: 'ksh', path: '/bin/ksh' },
].filter(({ path }) => existsSync(path));

function shellsOf({ path }: Kind): Shells {
  const sh = join(scratch(), 'sh');
  symlinkSync(path, sh);
  return { sh: [sh], bash: undefined };
}

class Gate {
  readonly child: ChildProcess;
  readonly group: number;
  exit: { code: number | null; signal: string | null } | undefined;
  readonly #ends: Socket[];
  #said = '';

  constructor(script: string, use: Shells, args: string[] = []) {
    const env = { PATH: process.env['PATH'] ?? '' };
    const { argv } = gate('/bin/sh', ['-c', script, 'sh', ...args], env, use);
    this.child = spawn(argv[0]!, argv.slice(1), {
      env,
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'pipe', 'pipe', 'pipe'],
    });
    this.group = this.child.pid!;
    this.#ends = this.child.stdio as unknown as Socket[];
    for (const fd of [3, 4, 5]) this.#ends[fd]!.on('error', () => {});
    this.#ends[3]!.on('data', (text: Buffer) => {
      this.#said += text.toString();
    });
    this.child.once('exit', (code, signal) => {
      this.exit = { code, signal };
    });
    onTestFinished(() => kill(-this.group, 'SIGKILL'));
  }

  async ready(): Promise<this> {
    await until('the gate is ready', () => this.#said === 'ready\n');
    return this;
  }

  write(fd: 3 | 4 | 5, text: string): void {
    this.#ends[fd]!.write(text);
  }

  end(fd: 3 | 4 | 5): void {
    this.#ends[fd]!.destroy();
  }
}

const forked = 'sleep 1000 & sleep 1000; wait';

describe.each([{ name: 'this machine', path: '' }, ...kinds])('$name as sh', (kind) => {
  const use = (): Shells => (kind.path === '' ? shells : shellsOf(kind));

  test('go: the program has its number, its arguments and its exit code', async () => {
    const file = join(scratch(), 'made');
    const one = await new Gate('touch "$1"; exit 9', use(), [file]).ready();
    expect(existsSync(file)).toBe(false);
    one.write(3, 'go\n');
    await until('it ended', () => one.exit);
    expect(one.exit).toEqual({ code: 9, signal: null });
    expect(existsSync(file)).toBe(true);
    expect(watchers(one.group)).toHaveLength(2);
  });

  test.each(['', 'g', 'no\n', '\n'])('%j and the end: nothing starts', async (text) => {
    const file = join(scratch(), 'made');
    const one = await new Gate('touch "$1"', use(), [file]).ready();
    one.write(3, text);
    one.end(3);
    await until('it ended', () => one.exit);
    expect(one.exit).toEqual({ code: 125, signal: null });
    expect(existsSync(file)).toBe(false);
    one.end(4);
    await groupDies(one.group);
  });

  test.each([
    ['supervisor', 4],
    ['guard', 5],
  ] as const)('the end of the %s ends the whole group', async (_, fd) => {
    const one = await new Gate(forked, use()).ready();
    one.write(5, '1000.00 1000\n');
    one.write(3, 'go\n');
    await until('all are there', () => sleepers(one.group) === 2);
    one.end(fd);
    await groupDies(one.group);
  });
});

describe.each([{ name: 'this machine', path: '' }, ...kinds].filter(readsWithTimeout))(
  '$name as sh, whose read has -t',
  (kind) => {
    test('a watcher that was told a time kills when nothing comes, and not while something does', async () => {
      const one = await new Gate(forked, kind.path === '' ? shells : shellsOf(kind)).ready();
      const toldMs = performance.now();
      const telling = setInterval(() => one.write(5, '3.00 3\n'), 200);
      one.write(3, 'go\n');
      await until('all are there', () => sleepers(one.group) === 2);
      await until('a first time has passed', () => performance.now() > toldMs + 3_500);
      clearInterval(telling);
      expect(sleepers(one.group)).toBe(2);
      await groupDies(one.group);
    });

    test('no time that is over before its read waits is lost', async () => {
      const times = 'i=0; while [ $i -lt 4000 ]; do read -r -t 0.00002 x; i=$((i+1)); done';
      const [sh, ...args] = kind.path === '' ? (shells.bash ?? shells.sh) : shellsOf(kind).sh;
      // Its input stays open, and no byte comes.
      const timed = spawn(sh!, [...args, '-c', `${timersOfSelect}; ${times}`], {
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      onTestFinished(() => kill(timed.pid!, 'SIGKILL'));
      await until('it has read for the last time', () => timed.exitCode !== null);
    });

    const hasUptime = existsSync('/proc/uptime');
    /** That many seconds from now, as the guard says it; `relative` is not to be believed. */
    const line = (seconds: number, relative: number): string =>
      `${relative.toFixed(2)} ${relative} ${uptime() + seconds * 100}\n`;

    test.runIf(hasUptime)(
      'lines that waited while the group was stopped extend nothing',
      async () => {
        const one = await new Gate(forked, kind.path === '' ? shells : shellsOf(kind)).ready();
        one.write(5, line(1_000, 1_000));
        one.write(3, 'go\n');
        await until('all are there', () => sleepers(one.group) === 2);
        process.kill(-one.group, 'SIGSTOP');
        for (let i = 0; i < 20; i += 1) one.write(5, line(-1, 1_000));
        process.kill(-one.group, 'SIGCONT');
        await groupDies(one.group);
      },
    );

    test.runIf(hasUptime)(
      'a time that ended while the group was stopped is not the last word',
      async () => {
        const file = join(scratch(), 'beats');
        const script = 'while :; do echo >>"$1"; sleep 0.01; done';
        const one = await new Gate(script, kind.path === '' ? shells : shellsOf(kind), [
          file,
        ]).ready();
        one.write(5, line(1_000, 1_000));
        one.write(3, 'go\n');
        const beats = (): number => (existsSync(file) ? statSync(file).size : 0);
        await until('it runs', () => beats() > 0);
        one.write(5, line(2, 2));
        const end = uptime() + 200;
        await until('the watcher knows', () => beats() > 20);
        process.kill(-one.group, 'SIGSTOP');
        await until('that time has ended', () => uptime() > end);
        for (const seconds of [-1, -1, 1_000]) one.write(5, line(seconds, 1_000));
        const before = beats();
        process.kill(-one.group, 'SIGCONT');
        await until('it has run on', () => one.exit ?? beats() > before + 150);
        expect(one.exit).toBeUndefined();
        // And only as long as that.
        one.write(5, line(-1, 1_000));
        await groupDies(one.group);
      },
    );
  },
);

/** In hundredths of a second. */
function uptime(): number {
  return Math.round(Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 100);
}

function readsWithTimeout({ path }: Kind): boolean {
  const [file, ...args] = path === '' ? (shells.bash ?? shells.sh) : [path];
  if (path.endsWith('busybox')) args.push('sh');
  return spawnSync(file!, [...args, '-c', 'echo | read -r -t 9 x']).status === 0;
}

test('names that only bash passes on are told where there is none', () => {
  const env = { GOOD: '1', 'A.B': '2', '1C': '3' };
  const none: Shells = { sh: ['/bin/sh'], bash: undefined };
  expect(gate('/bin/true', [], env, none).droppedNames).toEqual(['A.B', '1C']);
  expect(gate('/bin/true', [], env, { ...none, bash: ['bash'] }).droppedNames).toEqual([]);
});
