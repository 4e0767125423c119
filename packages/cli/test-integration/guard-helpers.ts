import type { ChildProcess, StdioOptions } from 'node:child_process';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Deadline } from 'incumbent';
import { onTestFinished } from 'vitest';
import type { ProgramExit } from '../src/guard/index.ts';

const fixture: string = fileURLToPath(new URL('guard-supervisor.mjs', import.meta.url));

/** Much longer than any step here takes; only turns a hang into a failure that says so. */
export const boundMs = 60_000;

/** Resolves when `condition` holds. Other processes send no events, so we have to poll. */
export async function until(what: string, condition: () => unknown): Promise<void> {
  const endMs = performance.now() + boundMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`waited ${boundMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), 'guard-test-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export interface Exited extends ProgramExit {
  readonly event: 'exited';
  readonly pid: number;
}
type Message = { readonly event?: string; readonly id?: number } & Record<string, unknown>;

export interface CallError {
  readonly name: string;
  readonly code?: string;
  readonly exitCode?: number;
  readonly message: string;
}

/**
 * A supervisor in a process of its own. It and every process that it started are killed after the
 * test.
 */
export class Supervisor {
  readonly child: ChildProcess;
  readonly events: Message[] = [];
  readonly #answers = new Map<number, (message: Message) => void>();
  #lastId = 0;
  #groups: number[] = [];

  constructor(
    { stdio = ['ignore', 'inherit', 'inherit'], by = 'exec "$@"' } = {} as SupervisorOptions,
  ) {
    if (!existsSync(fileURLToPath(new URL('../dist/guard/index.js', import.meta.url)))) {
      throw new Error('these tests run what was built: npm run build');
    }
    const args = ['-c', by, 'sh', process.execPath, fixture];
    this.child = spawn('/bin/sh', args, { stdio: [...(stdio as []), 'ipc'] });
    this.child.on('message', (message: Message) => {
      if (message.id === undefined) this.events.push(message);
      else this.#answers.get(message.id)?.(message);
    });
    onTestFinished(() => {
      const left = processes().filter((one) => this.#groups.includes(one.session));
      for (const pid of [
        this.child.pid,
        ...this.#groups.map((group) => -group),
        ...left.map((one) => one.pid),
      ]) {
        kill(pid, 'SIGKILL');
      }
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  async call<T = unknown>(command: string, options: object = {}): Promise<T> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise<Message>((resolve) => this.#answers.set(id, resolve));
    this.child.send({ id, command, options });
    const { value, error } = await bounded(answer, `the answer to ${command}`);
    if (error === undefined) return value as T;
    throw Object.assign(new Error((error as CallError).message), error);
  }

  /**
   * Starts the guard. G 4 s and K 0.3 s unless told otherwise. A guard that is silent for G counts as
   * lost, and a busy machine may leave it waiting for more than a second.
   */
  async start(options: object = {}): Promise<number> {
    const given = { stopMarginMs: 4_000, killMarginMs: 300, ...options };
    const { pid } = await this.call<{ pid: number }>('start', given);
    this.#groups.push(pid);
    return pid;
  }

  async believe(ms: number, wallMs: number = ms): Promise<Deadline> {
    return this.call<Deadline>('believe', { ms, wallMs });
  }

  async prepare(program: string, args: string[] = [], more: object = {}): Promise<number> {
    const { pid } = await this.call<{ pid: number }>('prepare', { program, args, ...more });
    this.#groups.push(pid);
    return pid;
  }

  /** prepare and go. */
  async run(program: string, args: string[] = [], more: object = {}): Promise<number> {
    const pid = await this.prepare(program, args, more);
    await this.call('go');
    return pid;
  }

  async event(name: string, nth: number = 1): Promise<Message> {
    const found = (): Message | undefined =>
      this.events.filter((message) => message.event === name)[nth - 1];
    await until(`the supervisor says "${name}"`, found);
    return found()!;
  }

  async exited(nth: number = 1): Promise<Exited> {
    return (await this.event('exited', nth)) as unknown as Exited;
  }
}

export interface SupervisorOptions {
  readonly stdio?: StdioOptions;
  /** The shell script that becomes the supervisor. */
  readonly by?: string;
}

async function bounded<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`waited ${boundMs} ms in vain for ${what}`)),
      boundMs,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function kill(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Several processes at once, by one process that does nothing else. */
export function killTogether(signal: 'KILL' | 'STOP' | 'CONT', ...pids: number[]): void {
  execFileSync('/bin/sh', ['-c', `kill -${signal} ${pids.join(' ')}`]);
}

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** 0 where it is not known. */
  readonly session: number;
  readonly state: string;
  readonly name: string;
}

/** All processes. Not what the code under test uses to know who is dead. */
export function processes(): ProcessInfo[] {
  if (process.platform !== 'linux') {
    const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat=,ucomm='], {
      encoding: 'utf8',
    });
    return lines
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .map(([pid, parent, group, state, name]) => info(pid, parent, group, '0', state, name));
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        const [state, parent, group, session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
        return [info(pid, parent, group, session, state, name)];
      } catch {
        return [];
      }
    });
}

function info(
  pid = '',
  parent = '',
  group = '',
  session = '',
  state = '?',
  name = '',
): ProcessInfo {
  const [one, its, of, under] = [pid, parent, group, session].map(Number);
  return { pid: one!, parent: its!, group: of!, session: under!, state, name };
}

/** The members of a group that can still act. */
export function living(group: number): ProcessInfo[] {
  return processes().filter((one) => one.group === group && !one.state.startsWith('Z'));
}

/** The members of a session that can still act but are not in the group of its leader. */
export function strays(session: number): ProcessInfo[] {
  return processes().filter(
    (one) => one.session === session && one.group !== session && !one.state.startsWith('Z'),
  );
}

/** How many `sleep`s of a group are there. */
export function sleepers(group: number): number {
  return living(group).filter((one) => one.name === 'sleep').length;
}

export function isAlive(pid: number): boolean {
  return processes().some((one) => one.pid === pid && !one.state.startsWith('Z'));
}

export async function groupDies(group: number): Promise<void> {
  await until(`nobody of group ${group} is left`, () => living(group).length === 0);
}

/** The watchers: members of the group whose parent is not in it. */
export function watchers(group: number): number[] {
  const members = living(group);
  const pids = new Set(members.map((one) => one.pid));
  return members.filter((one) => one.pid !== group && !pids.has(one.parent)).map((one) => one.pid);
}

export const recorder: string = fileURLToPath(new URL('guard-recorder.cjs', import.meta.url));

export interface Recorded {
  readonly role: string;
  readonly what: string;
  readonly monotonicMs: number;
}

/** The lines of the recorder so far, oldest first. */
export function records(file: string): Recorded[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => {
    const [role = '', what = '', ms] = line.split(' ');
    return { role, what, monotonicMs: Number(ms) };
  });
}

export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

export async function appears(file: string): Promise<void> {
  await until(`${file} is there`, () => existsSync(file) && statSync(file).size > 0);
}
