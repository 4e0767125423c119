import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { cliFile, isGroupGone, waitUntil } from '@incumbent/cli/trial';
import { monotonicMs } from '../clock.ts';
import type { Surroundings } from '../surroundings.ts';

export interface StartedProgram {
  /** Also its process group. */
  readonly pid: number;
  readonly token: bigint;
  /** When its first line reached us, monotonic. */
  readonly atMs: number;
}

export interface RunOptions {
  readonly directory: string;
  readonly election: string;
  /** Undefined: the default. */
  readonly lease?: string;
  /** Gets `$$` and its token from the shell that it is a script for. */
  readonly script?: string;
  /** The command that is measured. Default: that of the work tree. */
  readonly command?: string;
  readonly env?: NodeJS.ProcessEnv;
}

const answerWithinMs = 60_000;

// A shell, because its start costs next to nothing. It ends when its stdin does, which is our pipe.
const defaultScript = 'echo "$$ $INCUMBENT_TOKEN"; read -r line';

/** One `incumbent run`. Its program tells us by its first line that it has started. */
export class RunCandidate {
  readonly pid: number;
  readonly startedAtMs: number;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #programs: StartedProgram[] = [];
  #events: string[] = [];
  #end: string | undefined;

  constructor(surroundings: Surroundings, options: RunOptions) {
    const { directory, election, lease, script = defaultScript } = options;
    const { command = cliFile, env = process.env } = options;
    this.startedAtMs = monotonicMs();
    this.#child = spawn(
      process.execPath,
      [
        ...[command, 'run', '-e', election, '--store', `file:${directory}`, '--stdin', '--json'],
        ...(lease === undefined ? [] : ['--lease', lease]),
        ...['--', '/bin/sh', '-c', script],
      ],
      { detached: true, stdio: ['pipe', 'pipe', 'pipe'], env },
    );
    if (this.#child.pid === undefined) throw new Error('`incumbent run` could not be started');
    this.pid = this.#child.pid;
    surroundings.reaper.watch(this.#child);
    this.#child.on('error', () => {});
    this.#child.stdin?.on('error', () => {});
    this.#child.stdout?.setEncoding('latin1').on('data', (text: string) => {
      const atMs = monotonicMs();
      const [, pid, token] = /^(\d+) (\d+)\n$/.exec(text) ?? [];
      if (pid === undefined || token === undefined) return;
      this.#programs.push({ pid: Number(pid), token: BigInt(token), atMs });
    });
    createInterface({ input: this.#child.stderr as Readable }).on('line', (line) => {
      this.#events.push(line);
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        this.#end = signal ?? `exit code ${code}`;
        resolve();
      });
    });
  }

  /** The next program that it starts. */
  program(): Promise<StartedProgram> {
    return this.#next('waiting for the program of `incumbent run`', () => this.#programs.shift());
  }

  /** It campaigns. */
  async waits(): Promise<void> {
    await this.#next('waiting until `incumbent run` campaigns', () =>
      this.#events.some((line) => line.includes('"event":"waiting"')) ? true : undefined,
    );
  }

  /** True when it has started a program that nobody asked for. */
  get hasStartedAnother(): boolean {
    return this.#programs.length > 0;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** SIGKILL; resolves when it is gone. Its guard ends the program. */
  async kill(): Promise<void> {
    if (this.#end === undefined) this.#child.kill('SIGKILL');
    this.#child.stdin?.destroy();
    await this.#ended;
  }

  /** Its program comes to its own end, and it with the program. */
  async finish(): Promise<void> {
    this.#child.stdin?.end();
    await this.#ended;
  }

  async #next<T>(what: string, look: () => T | undefined): Promise<T> {
    const found = await waitUntil(() => {
      const seen = look();
      if (seen === undefined && this.#end !== undefined) {
        throw new Error(`${what}: it ended: ${this.#end}\n${this.#events.join('\n')}`);
      }
      return seen;
    }, answerWithinMs);
    if (found === undefined) throw new Error(`${what}: no answer\n${this.#events.join('\n')}`);
    return found;
  }
}

/** Waits until nobody of the program is left: nothing of it is to run into the next measurement. */
export async function untilGone({ pid }: StartedProgram): Promise<void> {
  const gone = await waitUntil(() => isGroupGone(pid), answerWithinMs);
  if (gone === undefined) throw new Error(`process group ${pid} does not end`);
}
