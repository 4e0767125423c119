/** When the program of a term is ready, and who says so. */
import { execFile } from 'node:child_process';
import { constants, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Term } from 'incumbent';
import type { ProgramSpec } from '../guard/index.ts';
import { GuardError } from '../guard/index.ts';
import { within } from '../within.ts';
import { describe } from './events.ts';
import { CommandFailedError, runShellCheck } from './shell-check.ts';

export type Readiness = {
  /** A term that is not ready by then ends. */
  readonly withinMs: number;
} /** A shell command ends with 0. It runs once in `everyMs`, and may take as long. */ & (
  | { readonly by: 'command'; readonly command: string; readonly everyMs: number }
  /** The program writes a line `READY=1` to a named pipe, whose path is in `INCUMBENT_NOTIFY`. */
  | { readonly by: 'notification' }
);

/** Folder and pipe are made in this time, or the program is not started. */
const pipeWithinMs = 5_000;

/** Told while a program is waited for. */
export interface ReadinessEvents {
  readonly onTrouble: (error: unknown) => void;
  /** `--ready-timeout` is over. `last`: what was heard before. */
  readonly onNotReady: (last: string) => void;
}

/** Other variables of systemd's protocol, such as STATUS. They say nothing about readiness. */
const otherVariable = /^(?!READY=)[A-Z][A-Z0-9_]*=/;

/** A program that says more than this without a line break says nothing. */
const longestLine = 4_096;
/** Of a line, in words for people. */
const longestShown = 100;

/**
 * Waits until the program of one term is ready, and says so in the term. Each term has a watch of
 * its own: words of the program of an earlier term do not count.
 */
export class ReadinessWatch {
  /** The program, with the variables that it needs to say that it is ready. */
  readonly spec: ProgramSpec;
  readonly #readiness: Readiness;
  readonly #term: Term;
  readonly #events: ReadinessEvents;
  readonly #stop = new AbortController();
  readonly #pipe: NamedPipe | undefined;
  #last: string;
  #isWrongLineTold = false;

  private constructor(
    readiness: Readiness,
    spec: ProgramSpec,
    term: Term,
    pipe: NamedPipe | undefined,
    events: ReadinessEvents,
  ) {
    this.#readiness = readiness;
    this.#term = term;
    this.#pipe = pipe;
    this.#events = events;
    this.#last = pipe === undefined ? 'no check has ended' : 'it has written no line';
    const env = pipe === undefined ? spec.env : { ...spec.env, INCUMBENT_NOTIFY: pipe.path };
    this.spec = { ...spec, env };
  }

  /** @throws GuardError when the named pipe cannot be made; the end of the term */
  static async open(
    readiness: Readiness,
    spec: ProgramSpec,
    term: Term,
    events: ReadinessEvents,
  ): Promise<ReadinessWatch> {
    const pipe = readiness.by === 'notification' ? await makePipe(term.signal) : undefined;
    return new ReadinessWatch(readiness, spec, term, pipe, events);
  }

  /** The program runs. */
  begin(): void {
    const readiness = this.#readiness;
    const { signal } = this.#term;
    const onEnd = () => {
      const { reason } = signal.reason as { reason?: unknown };
      if (reason === 'not-ready') this.#events.onNotReady(this.#pipe?.unfinished ?? this.#last);
    };
    signal.addEventListener('abort', onEnd, { once: true, signal: this.#stop.signal });
    if (readiness.by === 'command') {
      void this.#ask(readiness.command, readiness.everyMs);
      return;
    }
    this.#pipe?.read((line) => this.#heard(line.trim()));
  }

  #heard(line: string): void {
    if (line === 'READY=1') {
      this.#isReady();
      return;
    }
    if (line === '' || this.#stop.signal.aborted) return;
    this.#last = `the line ${JSON.stringify(line.slice(0, longestShown))}`;
    if (otherVariable.test(line) || this.#isWrongLineTold) return;
    this.#isWrongLineTold = true;
    this.#events.onTrouble(new Error(`--notify: ${this.#last} says nothing; write READY=1`));
  }

  /** Nothing makes the term ready any more. A check that still runs is killed. */
  stop(): void {
    this.#stop.abort();
  }

  /** Stops, and removes what the watch has made. Never rejects. */
  async close(): Promise<void> {
    this.stop();
    await this.#pipe?.remove();
  }

  async #ask(command: string, everyMs: number): Promise<void> {
    const { signal } = this.#stop;
    const { env, cwd } = this.spec;
    let isTold = false;
    while (!signal.aborted) {
      const pause = sleep(everyMs, undefined, { signal }).catch(() => {});
      try {
        await within(everyMs, '--ready-when', signal, (bound) =>
          runShellCheck('--ready-when', command, env, cwd, bound),
        );
        this.#isReady();
        return;
      } catch (error) {
        // Not ready yet. `--ready-timeout` ends a term that never is.
        if (!signal.aborted) this.#last = describe(error);
        if (isUnusable(error) && !isTold) this.#events.onTrouble(error);
        isTold ||= isUnusable(error);
      }
      await pause;
    }
  }

  #isReady(): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.#term.ready().catch((error: unknown) => {
      // The end of the term is told elsewhere.
      if (error !== this.#term.signal.reason) this.#events.onTrouble(error);
    });
  }
}

/** The shell cannot run the command, so it will never say that the program is ready. */
function isUnusable(error: unknown): boolean {
  return error instanceof CommandFailedError && (error.exitCode === 126 || error.exitCode === 127);
}

async function makePipe(signal: AbortSignal): Promise<NamedPipe> {
  try {
    return await NamedPipe.make(signal);
  } catch (error) {
    signal.throwIfAborted();
    const why = `the named pipe of --notify cannot be made: ${(error as Error).message}`;
    throw new GuardError('CANNOT_START', why);
  }
}

/** A pipe with a name, which any language can open and write to as a file. */
class NamedPipe {
  readonly path: string;
  readonly #directory: string;
  readonly #socket: Socket;
  #partial = '';

  private constructor(directory: string, path: string) {
    this.#directory = directory;
    this.path = path;
    // For writing too: so it has no end while the program has not opened it, or has closed it. And
    // a program that opens it does not wait for a reader.
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#socket.unref();
    // A pipe that fails says nothing more, and the term ends for want of readiness.
    this.#socket.on('error', () => {});
  }

  static async make(signal: AbortSignal): Promise<NamedPipe> {
    // Only this user may enter it.
    const directory = await mkdtemp(join(tmpdir(), 'incumbent-notify-'));
    try {
      const path = join(directory, 'notify');
      const bounds = { signal, timeout: pipeWithinMs };
      await promisify(execFile)('mkfifo', ['-m', '600', path], bounds);
      return new NamedPipe(directory, path);
    } catch (error) {
      await removeFolder(directory);
      throw error;
    }
  }

  /** A line that still lacks its end, in words. Undefined: there is none. */
  get unfinished(): string | undefined {
    if (this.#partial === '') return undefined;
    return `${JSON.stringify(this.#partial.slice(0, longestShown))} without a line break`;
  }

  read(onLine: (line: string) => void): void {
    this.#socket.setEncoding('utf8').on('data', (text: unknown) => {
      const lines = `${this.#partial}${String(text)}`.split('\n');
      this.#partial = (lines.pop() ?? '').slice(-longestLine);
      for (const line of lines) onLine(line);
    });
  }

  async remove(): Promise<void> {
    this.#socket.destroy();
    await removeFolder(this.#directory);
  }
}

/** A folder that stays is no reason for another end of the run. */
async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => {});
}
