/**
 * Shared by the black-box tests of `incumbent run`: a place for one test, runs started there, their
 * reports, and the log that their programs write. Nothing survives its test.
 */
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { TestAPI } from 'vitest';
import { test as base } from 'vitest';

export const bin: string = fileURLToPath(new URL('../../dist/bin.js', import.meta.url));
const workerFile: string = fileURLToPath(new URL('run-worker.cjs', import.meta.url));

/** Much longer than any step here takes; only turns a hang into a failure that says so. */
export const boundMs = 150_000;

/** Resolves when `condition` holds. Other processes send no events, so we have to poll. */
export async function until(
  what: string | (() => string),
  condition: () => unknown,
  withinMs: number = boundMs,
): Promise<void> {
  const endMs = monotonicMs() + withinMs;
  while (!(await condition())) {
    if (monotonicMs() > endMs) {
      const words = typeof what === 'string' ? what : what();
      throw new Error(`waited ${withinMs} ms in vain until ${words}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** CLOCK_MONOTONIC, which all processes of a machine share. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

// --- processes ---

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly state: string;
}

/** All processes. Not what the code under test uses to know who is dead. */
export function processes(): ProcessInfo[] {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat='], { encoding: 'utf8' });
    return lines
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .map(([pid, parent, group, state]) => info(pid, parent, group, state));
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return [info(pid, parent, group, state)];
      } catch {
        return [];
      }
    });
}

function info(pid?: string, parent?: string, group?: string, state?: string): ProcessInfo {
  return { pid: Number(pid), parent: Number(parent), group: Number(group), state: state ?? '?' };
}

function isDead({ state }: ProcessInfo): boolean {
  return /^[ZX]/.test(state);
}

/** The members of a group that can still act: a zombie cannot. */
export function living(group: number): ProcessInfo[] {
  return processes().filter((one) => one.group === group && !isDead(one));
}

export function isAlive(pid: number): boolean {
  return processes().some((one) => one.pid === pid && !isDead(one));
}

export function groupOf(pid: number): number | undefined {
  return processes().find((one) => one.pid === pid)?.group;
}

export async function groupDies(group: number): Promise<void> {
  await until(`nobody of group ${group} is left`, () => living(group).length === 0);
}

/** The watchers of a group: members whose parent is not in it, other than its leader. */
export function watchers(group: number): number[] {
  const members = living(group);
  const pids = new Set(members.map(({ pid }) => pid));
  return members
    .filter(({ pid, parent }) => pid !== group && !pids.has(parent))
    .map(({ pid }) => pid);
}

/**
 * Several processes at once, by one process that does nothing else. One of them may die of the death
 * of another one before its own signal is sent: a guard is that fast.
 */
export function signalTogether(name: 'KILL' | 'STOP' | 'CONT', ...pids: number[]): void {
  const { status, stderr } = spawnSync('/bin/sh', ['-c', `kill -${name} ${pids.join(' ')}`], {
    encoding: 'utf8',
  });
  const refusals = stderr.split('\n').filter((line) => line !== '');
  if (
    status !== 0 &&
    !(name === 'KILL' && refusals.every((line) => line.endsWith('No such process')))
  ) {
    throw new Error(`kill -${name} ${pids.join(' ')}: ${stderr.trim()}`);
  }
}

/** Whether `runInTerminal` works here. */
export function hasTerminals(): boolean {
  if (process.platform !== 'linux' || !existsSync('/bin/bash')) return false;
  try {
    return execFileSync('script', ['--version'], { encoding: 'utf8' }).includes('util-linux');
  } catch {
    return false;
  }
}

export const terminalsNeed = 'needs script(1) of util-linux and bash: a terminal with job control';

// --- the log of the workers ---

export interface Stamp {
  readonly token: bigint;
  readonly role: string;
  readonly pid: number;
  readonly monotonicMs: number;
  readonly what: string;
}

/** Throws unless the work of each token was over before that of a newer one began. */
export function checkOneAtATime(stamps: readonly Stamp[]): void {
  let newest: Stamp | undefined;
  const ends = new Map<bigint, Stamp>();
  for (const stamp of stamps) {
    if (stamp.what.startsWith('start-beside')) {
      throw new Error(`mutual exclusion: token ${stamp.token} began with ${stamp.what}`);
    }
    if (newest !== undefined && stamp.token < newest.token) {
      throw new Error(
        `mutual exclusion: ${stamp.role} of token ${stamp.token} wrote after token ${newest.token}`,
      );
    }
    newest = stamp;
    const end = ends.get(stamp.token);
    if (end === undefined || end.monotonicMs < stamp.monotonicMs) ends.set(stamp.token, stamp);
  }
  for (const stamp of stamps) {
    for (const [token, end] of ends) {
      if (token >= stamp.token || end.monotonicMs < stamp.monotonicMs) continue;
      const overlapMs = (end.monotonicMs - stamp.monotonicMs).toFixed(1);
      throw new Error(
        `mutual exclusion: tokens ${token} and ${stamp.token} overlap by ${overlapMs} ms`,
      );
    }
  }
}

// --- runs ---

export interface RunEvent {
  readonly event: string;
  /** When we heard of it: not before it happened. */
  readonly heardAtMs: number;
  readonly token?: string;
  readonly pid?: number;
  readonly [field: string]: unknown;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RunSettings {
  /** Options of `run` besides election, store, id and lease. */
  readonly options?: readonly string[];
  /** Default 15s, which no load of the machine ends. Tests that wait for the end of one take 4s. */
  readonly lease?: string;
  readonly election?: string;
  /**
   * The command to start in place of `node`, with `node` and its arguments as its last arguments.
   */
  readonly through?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdio?: StdioOptions;
  /** The test reads the stdout of the run itself. */
  readonly rawStdout?: true;
  /** Events for programs (default), or as people read them. */
  readonly json?: boolean;
  readonly store?: string;
}

/** One `incumbent run`. */
export class RunProcess {
  readonly id: string;
  readonly child: ChildProcess;
  readonly events: RunEvent[] = [];
  /** Lines that came where events were expected and are none. */
  readonly otherLines: string[] = [];
  readonly exited: Promise<Exit>;
  exit: Exit | undefined;
  stdout = '';
  stderr = '';

  constructor(id: string, child: ChildProcess, rawStdout = false) {
    this.id = id;
    this.child = child;
    const stdout = rawStdout ? null : child.stdout;
    stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    const source = child.stdio[3] ?? child.stderr;
    if (source) this.#readEvents(source as Readable);
    this.exited = new Promise((resolve) => {
      // `close`: everything that was said has been read.
      child.once('close', (code, signal) => {
        this.exit = { code, signal };
        resolve(this.exit);
      });
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** The guard, as the process table knows it. */
  get guardPid(): number | undefined {
    return this.helper('/guard.cjs');
  }

  /** A process that it has started, by a part of its command line. */
  helper(part: string): number | undefined {
    return processes().find(
      ({ parent, pid }) => parent === this.pid && commandLine(pid).includes(part),
    )?.pid;
  }

  all(name: string): RunEvent[] {
    return this.events.filter(({ event }) => event === name);
  }

  /** The `nth` event of this name. Fails at once when the run ends without it. */
  async event(name: string, nth = 1): Promise<RunEvent> {
    return this.eventWhere(`"${name}" (${nth})`, () => this.all(name)[nth - 1]);
  }

  async eventWhere(what: string, find: () => RunEvent | undefined): Promise<RunEvent> {
    await until(
      () => `${this.id} says ${what}; it said:\n${this.story()}`,
      () => {
        if (find() === undefined && this.exit !== undefined) {
          throw new Error(`${this.id} ended without ${what}; it said:\n${this.story()}`);
        }
        return find() !== undefined;
      },
    );
    return find()!;
  }

  /** Leads, and its program was started. @returns the number of the program and of its group */
  async started(nth = 1): Promise<{ readonly pid: number; readonly token: bigint }> {
    const { pid, token } = await this.event('started', nth);
    return { pid: pid!, token: BigInt(token!) };
  }

  /** How it ended, within the bound. */
  async ends(): Promise<Exit> {
    await until(
      () => `${this.id} ends; it said:\n${this.story()}`,
      () => this.exit !== undefined,
    );
    return this.exit as unknown as Exit;
  }

  kill(name: NodeJS.Signals): void {
    process.kill(this.pid, name);
  }

  story(): string {
    const lines = this.events.map(
      ({ heardAtMs, ...event }) => `${heardAtMs.toFixed(0)} ${JSON.stringify(event)}`,
    );
    return [...lines, ...this.otherLines, JSON.stringify(this.exit ?? 'runs')].join('\n');
  }

  #readEvents(source: Readable): void {
    let partial = '';
    source.setEncoding('utf8').on('data', (text: string) => {
      const lines = (partial + text).split('\n');
      partial = lines.pop()!;
      for (const line of lines) this.#heard(line);
    });
    source.on('end', () => {
      if (partial !== '') this.#heard(partial);
    });
  }

  #heard(line: string): void {
    try {
      const event = JSON.parse(line) as RunEvent;
      if (typeof event.event !== 'string') throw new Error('no event');
      this.events.push({ ...event, heardAtMs: monotonicMs() });
    } catch {
      this.otherLines.push(line);
    }
  }
}

export function commandLine(pid: number): string {
  if (process.platform !== 'linux') {
    return execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

// --- the place of one test ---

const tagName = 'INCUMBENT_TEST_LAB';
const workerTag = `${process.pid}-${Math.round(monotonicMs())}`;
let labs = 0;
let reaper: ChildProcess | undefined;

/**
 * However this process ends, the processes that it started end after it. A shell reads a pipe that
 * is never written to. At its end the shell kills all processes that bear our mark, in any session,
 * stopped or not.
 */
function startReaper(): void {
  if (reaper !== undefined || process.platform !== 'linux') return;
  const script = [
    'cat >/dev/null',
    'for round in 1 2 3; do',
    '  for pid in $(grep -lsz "^$1" /proc/[0-9]*/environ | cut -d/ -f3); do',
    '    kill -KILL "$pid" 2>/dev/null',
    '  done',
    'done',
    'rm -rf "$2"*',
  ].join('\n');
  const args = ['-c', script, 'reaper', `${tagName}=${workerTag}.`, scratchPrefix];
  reaper = spawn('/bin/sh', args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  reaper.unref();
  (reaper.stdin as unknown as { unref(): void }).unref();
}
const scratchPrefix = join(realpathSync(tmpdir()), `run-test-${workerTag}-`);

export interface HeldRecord {
  readonly number: number;
  readonly token: bigint;
  readonly leaseMs: number;
  readonly ended: boolean;
  readonly nonce: string;
  readonly holding?: {
    readonly announced: boolean;
    readonly actors: readonly { readonly pid: number; readonly group?: number }[] | null;
    readonly candidate: { readonly id: string };
  };
  readonly history: readonly {
    readonly id: string;
    readonly why: string;
    readonly token: string;
  }[];
}

export class Lab {
  readonly directory: string;
  /** The directory of the store; made by the first run. */
  readonly store: string;
  /** The file that workers write to. */
  readonly log: string;
  readonly #tag: string;
  readonly #runs: RunProcess[] = [];
  readonly #stamps: Stamp[] = [];
  #readBytes = 0;

  constructor() {
    startReaper();
    labs += 1;
    this.#tag = `${workerTag}.${labs}.`;
    this.directory = mkdtempSync(scratchPrefix);
    this.store = join(this.directory, 'store');
    this.log = join(this.directory, 'log');
  }

  /** The environment of everything that is started here. */
  get env(): NodeJS.ProcessEnv {
    const { NODE_OPTIONS, NODE_V8_COVERAGE, INCUMBENT_STORE, ...rest } = process.env;
    return { ...rest, [tagName]: this.#tag };
  }

  /** A worker as the program of a run. */
  worker(roles = 'leader', ...flags: string[]): string[] {
    return [process.execPath, workerFile, this.log, roles, ...flags];
  }

  /** Starts `incumbent run` as candidate `id`. */
  run(id: string, program: readonly string[], settings: RunSettings = {}): RunProcess {
    if (!existsSync(bin)) throw new Error('these tests run what was built: npm run build');
    const { through = [], stdio = ['ignore', 'pipe', 'pipe'], json = true } = settings;
    const command = [
      ...through,
      process.execPath,
      bin,
      ...this.arguments(id, settings),
      ...(json ? ['--json'] : []),
      '--',
      ...program,
    ];
    const child = spawn(command[0]!, command.slice(1), {
      stdio,
      cwd: settings.cwd ?? this.directory,
      env: { ...this.env, ...settings.env },
    });
    const run = new RunProcess(id, child, settings.rawStdout);
    this.#runs.push(run);
    return run;
  }

  /**
   * Types the same command line into a shell with job control in a terminal of its own. Text
   * written to the `stdin` of the child is typed, too. Needs `script` and `bash`.
   */
  runInTerminal(id: string, program: readonly string[], settings: RunSettings = {}): RunProcess {
    // Signs that a shell would take for more than themselves are not needed here.
    const words = [process.execPath, bin, ...this.arguments(id, settings)];
    const line = [...words, '--json', '--events-fd', '3', '--', ...program].join(' ');
    const child = spawn('script', ['-qec', 'bash --norc --noprofile -i', '/dev/null'], {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      cwd: this.directory,
      env: { ...this.env, ...settings.env },
    });
    child.stdin!.write(`${line}\n`);
    const run = new RunProcess(id, child);
    this.#runs.push(run);
    return run;
  }

  arguments(id: string, settings: RunSettings = {}): string[] {
    const {
      election = 'work',
      lease = '15s',
      options = [],
      store = `file:${this.store}`,
    } = settings;
    return ['run', '-e', election, '--store', store, '--id', id, '--lease', lease, ...options];
  }

  /** Another command of the command line, to its end. */
  async cli(
    ...args: string[]
  ): Promise<Exit & { readonly stdout: string; readonly stderr: string }> {
    const store = args.includes('--store') ? [] : ['--store', `file:${this.store}`];
    const withStore = [bin, ...args, ...store];
    return new Promise((resolve) => {
      const options = { env: this.env, cwd: this.directory, timeout: boundMs };
      const child = execFile(process.execPath, withStore, options, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr }),
      );
    });
  }

  /** The present record, read without the code under test; undefined: there is none. */
  record(election = 'work', store = this.store): HeldRecord | undefined {
    for (;;) {
      const directory = join(store, election);
      if (!existsSync(directory)) return undefined;
      const name = readdirSync(directory)
        .filter((one) => /^\d{16}$/.test(one))
        .sort()
        .at(-1);
      if (name === undefined) return undefined;
      try {
        const text = readFileSync(join(directory, name), 'utf8');
        const body = JSON.parse(text.slice(text.indexOf('\n') + 1));
        return { ...body, number: Number(name), token: BigInt(body.token) };
      } catch (error) {
        // Pruned between the two looks.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
  }

  /** When the newest record was written, and so the latest instant that a belief can count from. */
  lastWriteMs(store = this.store, election = 'work'): number {
    const name = String(this.record(election, store)!.number).padStart(16, '0');
    const { mtimeMs } = statSync(join(store, election, name));
    return monotonicMs() - (Date.now() - mtimeMs);
  }

  /** All of the log so far; only what is new is read. */
  stamps(): readonly Stamp[] {
    if (!existsSync(this.log)) return [];
    const fd = openSync(this.log, 'r');
    try {
      const text = Buffer.alloc(fstatSync(fd).size - this.#readBytes);
      const end = text.subarray(0, readSync(fd, text, 0, text.length, this.#readBytes));
      const whole = end.subarray(0, end.lastIndexOf('\n') + 1);
      this.#readBytes += whole.length;
      for (const line of whole.toString('latin1').split('\n').slice(0, -1)) {
        const [token = '', role = '', pid, ms, what = ''] = line.split(' ');
        const at = { pid: Number(pid), monotonicMs: Number(ms) };
        this.#stamps.push({ token: BigInt(token), role, ...at, what });
      }
      return this.#stamps;
    } finally {
      closeSync(fd);
    }
  }

  /** Stamps of one token. */
  work(token: bigint): Stamp[] {
    return this.stamps().filter((stamp) => stamp.token === token);
  }

  async works(token: bigint, what = 'ready'): Promise<Stamp> {
    const find = () => this.work(token).find((stamp) => stamp.what === what);
    await until(
      () => `the worker of token ${token} wrote "${what}"; the runs said:\n${this.story()}`,
      find,
    );
    return find()!;
  }

  story(): string {
    return this.#runs.map((run) => `--- ${run.id}\n${run.story()}`).join('\n');
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  write(name: string, text: string, mode = 0o644): string {
    const path = this.path(name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, text, { mode });
    return path;
  }

  /** The processes that bear our mark and can still act. */
  survivors(): number[] {
    if (process.platform !== 'linux') return this.#runs.map(({ pid }) => pid).filter(isAlive);
    const mark = `${tagName}=${this.#tag}`;
    return processes()
      .filter((one) => !isDead(one))
      .map(({ pid }) => pid)
      .filter((pid) => {
        try {
          return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}\0`.includes(`\0${mark}\0`);
        } catch {
          return false;
        }
      });
  }

  async close(): Promise<void> {
    await until('all that was started here is dead', () => {
      const pids = this.survivors();
      for (const pid of pids) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // Gone meanwhile.
        }
      }
      return pids.length === 0;
    });
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export const test: TestAPI<{ lab: Lab }> = base.extend<{ lab: Lab }>({
  lab: async ({ task, onTestFailed }, use) => {
    const lab = new Lab();
    // Named, because tests run beside each other.
    onTestFailed(() => console.error(`failed: ${task.name}\n${lab.story()}`));
    try {
      await use(lab);
    } finally {
      await lab.close();
    }
  },
});
