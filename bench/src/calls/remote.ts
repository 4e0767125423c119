import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import type { Surroundings } from '../surroundings.ts';
import type { Answer, Call, Methods } from './calls.ts';

/** Long after anything that is measured. */
const answerWithinMs = 30_000;
const keptErrorCharacters = 2_000;

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A process of ours that answers calls: see `calls.ts`. */
export class Remote<M extends Methods<M>> {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #pending = new Map<number, Pending>();
  #calls = 0;
  #end: string | undefined;
  #errors = '';

  constructor(surroundings: Surroundings, name: string, command: readonly string[]) {
    const [file = '', ...args] = command;
    this.name = name;
    this.#child = spawn(file, args, {
      // Signals of a terminal are for us.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    surroundings.reaper.watch(this.#child);
    this.#child.stdin?.on('error', () => {});
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-keptErrorCharacters);
    });
    let rest = '';
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#settle(line);
    });
    this.#ended = new Promise((resolve) => {
      const ended = (how: string) => {
        this.#end ??= how;
        for (const { reject } of this.#pending.values()) reject(this.#goneError());
        this.#pending.clear();
        resolve();
      };
      this.#child.once('error', (error) => ended(error.message));
      this.#child.once('close', (code, signal) => ended(signal ?? `exit code ${code}`));
    });
  }

  /** @throws Error of the method, or that the process has ended or does not answer */
  call<K extends keyof M & string>(
    method: K,
    params: M[K]['params'],
    limitMs: number = answerWithinMs,
  ): Promise<M[K]['result']> {
    if (this.#end !== undefined) return Promise.reject(this.#goneError());
    this.#calls += 1;
    const call: Call = { id: this.#calls, method, params };
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(call.id);
        reject(new Error(`no answer to "${method}" within ${limitMs} ms\n${this.#errors}`.trim()));
      }, limitMs);
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          clearTimeout(timer);
          settle(value);
        };
      this.#pending.set(call.id, { resolve: settled(resolve), reject: settled(reject) });
      (this.#child.stdin as Writable).write(`${JSON.stringify(call)}\n`);
    });
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    if (this.#end === undefined) this.#child.kill('SIGKILL');
    await this.#ended;
  }

  #settle(line: string): void {
    const answer = parse(line);
    if (answer === undefined) {
      this.#errors = `${this.#errors}${line}\n`.slice(-keptErrorCharacters);
      return;
    }
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if ('error' in answer) pending?.reject(new Error(answer.error));
    else pending?.resolve(answer.result);
  }

  #goneError(): Error {
    return new Error(`its process ended: ${this.#end}\n${this.#errors}`.trim());
  }
}

/** Some clients talk on stdout. */
function parse(line: string): Answer | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && 'id' in value
      ? (value as Answer)
      : undefined;
  } catch {
    return undefined;
  }
}
