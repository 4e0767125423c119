/** Services that lead with `releaseOnCrash`, their companions and heirs, and the log of their work. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { waitFor } from '@incumbent/servers';
import type { TimingOptions } from '../../src/base/timing.ts';

const serviceFile = fileURLToPath(new URL('crash-service.mjs', import.meta.url));

export interface Said {
  readonly event: 'waits' | 'leads' | 'fences' | 'stops' | 'trouble';
  readonly name?: string;
  readonly token?: string;
  readonly message?: string;
}

export interface ServiceSettings {
  /** `kind|address|ttl` of its store. */
  readonly store: string;
  /** The same store by another way, which its heir does not take. */
  readonly at?: string;
  readonly elections: readonly string[];
  readonly timing?: TimingOptions;
  /** Command and arguments before `node`. */
  readonly through?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A process with these words in its command line, and this parent. */
function find(word: string, parent?: number): number[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(word)) return [];
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const [state, ppid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const isOne = state !== 'Z' && (parent === undefined || Number(ppid) === parent);
      return isOne ? [Number(pid)] : [];
    } catch {
      return [];
    }
  });
}

export function isAlive(pid: number): boolean {
  return find('').includes(pid);
}

/** It catches the last of the signals that it does not want. */
function hasBegun(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const caught = BigInt(`0x${/^SigCgt:\t(\w+)$/m.exec(status)?.[1]}`);
  return (caught & (1n << BigInt(constants.signals.SIGTTOU - 1))) !== 0n;
}

export function sessionOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
}

export class Service {
  readonly child: ChildProcess;
  readonly said: Said[] = [];
  readonly #events = new EventEmitter();

  constructor(id: string, log: string, settings: ServiceSettings) {
    const { store, at, elections, timing, through = [], env = {} } = settings;
    const told = JSON.stringify({ id, at, elections, timing, log });
    const [program = '', ...args] = [...through, process.execPath, serviceFile, told];
    this.child = spawn(program, args, {
      env: { ...process.env, ...env, CRASH_STORE: store },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    createInterface({ input: this.child.stdout! }).on('line', (line) => {
      this.said.push(JSON.parse(line) as Said);
      this.#events.emit('said');
    });
    this.child.once('exit', () => this.#events.emit('said'));
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** The first such event after the first `from`. */
  async says(event: Said['event'], name?: string): Promise<Said> {
    for (;;) {
      const found = this.said.find(
        (said) => said.event === event && (name === undefined || said.name === name),
      );
      if (found !== undefined) return found;
      const { exitCode, signalCode } = this.child;
      if (exitCode !== null || signalCode !== null) {
        throw new Error(`it ended without ${event}: ${JSON.stringify(this.said)}`);
      }
      await once(this.#events, 'said');
    }
  }

  async leads(name: string): Promise<bigint> {
    return BigInt((await this.says('leads', name)).token!);
  }

  /** Its companions, once each of them heeds signals. */
  async companions(): Promise<number[]> {
    const found = find('companion.cjs', this.pid);
    await waitFor('the companions listen', async () => found.every(hasBegun));
    return found;
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    this.child.kill(signal);
  }

  async ends(): Promise<void> {
    // `close`: its output has ended too, so no process holds it.
    const { exitCode, signalCode, stdout } = this.child;
    if ((exitCode !== null || signalCode !== null) && stdout?.closed) return;
    await once(this.child, 'close');
  }
}

/** The child of this process with that word in its command line, as soon as there is one. */
export async function childOf(parent: number, word: string): Promise<number> {
  await waitFor(`process ${parent} starts ${word}`, async () => find(word, parent).length > 0);
  return find(word, parent)[0]!;
}

export async function ends(pid: number): Promise<void> {
  await waitFor(`process ${pid} ends`, async () => !isAlive(pid));
}

export function filesOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return `${fd} ${readlinkSync(`/proc/${pid}/fd/${fd}`)}`;
    } catch {
      return fd;
    }
  });
}

export class CrashLab implements AsyncDisposable {
  readonly directory: string = mkdtempSync(join(tmpdir(), 'incumbent-crash-'));
  readonly #services: Service[] = [];

  start(id: string, settings: ServiceSettings): Service {
    const service = new Service(id, this.log, settings);
    this.#services.push(service);
    return service;
  }

  get log(): string {
    return join(this.directory, 'log');
  }

  /** Throws when a leader of a token still worked after the first work of a newer one. */
  checkOneAtATime(): void {
    const first = new Map<string, { readonly token: bigint; readonly at: bigint }[]>();
    const lines = readFileSync(this.log, 'utf8').trim().split('\n');
    const stamps = lines.map((line) => line.split(' ') as [string, string, string]);
    for (const [name, token, at] of stamps) {
      const firsts = first.get(name) ?? [];
      first.set(name, firsts);
      if (firsts.every((each) => each.token !== BigInt(token))) {
        firsts.push({ token: BigInt(token), at: BigInt(at) });
      }
    }
    for (const [name, token, at] of stamps) {
      const newer = first
        .get(name)!
        .find((each) => each.token > BigInt(token) && each.at <= BigInt(at));
      if (newer !== undefined) {
        throw new Error(`mutual exclusion: token ${token} of ${name} worked beside ${newer.token}`);
      }
    }
  }

  /**
   * For NODE_OPTIONS: each program that is started with it is noted. An heir that finds a file of the name `ends` is
   * ended once, as by a manager of services, before its own first line.
   */
  get noting(): string {
    const module = join(this.directory, 'noting.mjs');
    writeFileSync(
      module,
      `import { appendFileSync, rmSync } from 'node:fs';
      import { basename } from 'node:path';
      const program = basename(process.argv[1]);
      appendFileSync(${JSON.stringify(this.#notes)}, program + '\\n');
      if (program === 'heir.mjs') try {
        rmSync(${JSON.stringify(join(this.directory, 'ends'))});
        process.kill(process.pid, 'SIGTERM');
        setTimeout(() => {}, 1e9);
        await new Promise(() => {});
      } catch {}`,
    );
    return `--import=${module}`;
  }

  get #notes(): string {
    return join(this.directory, 'programs');
  }

  /** Programs that were started with `noting`, in order. */
  started(): string[] {
    return existsSync(this.#notes) ? readFileSync(this.#notes, 'utf8').trim().split('\n') : [];
  }

  /** The next heir is ended by TERM, once. */
  endNextHeir(): void {
    writeFileSync(join(this.directory, 'ends'), '');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const service of this.#services) {
      service.kill();
      await service.ends();
    }
    rmSync(this.directory, { recursive: true, force: true });
  }
}
