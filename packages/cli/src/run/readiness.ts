/** When the program of a term is ready, and who says so. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Term } from 'incumbent';
import type { ProgramSpec } from '../guard/index.ts';
import { within } from '../within.ts';
import { describe } from './events.ts';
import { NamedPipe } from './named-pipe.ts';
import { CommandFailedError, runShellCheck } from './shell-check.ts';

export type Readiness = {
  /** A term that is not ready by then ends. */
  readonly withinMs: number;
} /** A shell command ends with 0. It runs once in `everyMs`, and may take as long. */ & (
  | { readonly by: 'command'; readonly command: string; readonly everyMs: number }
  /** The program writes a line `READY=1` to a named pipe, whose path is in `INCUMBENT_NOTIFY`. */
  | { readonly by: 'notification' }
);

/** Told while a program is waited for. */
export interface ReadinessEvents {
  readonly onTrouble: (error: unknown) => void;
  /** `--ready-timeout` is over. `last`: what was heard before. */
  readonly onNotReady: (last: string) => void;
}

/** Other variables of systemd's protocol, such as STATUS. They say nothing about readiness. */
const otherVariable = /^(?!READY=)[A-Z][A-Z0-9_]*=/;
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
    const pipe =
      readiness.by === 'notification' ? await NamedPipe.make('notify', term.signal) : undefined;
    return new ReadinessWatch(readiness, spec, term, pipe, events);
  }

  /** The program runs. */
  begin(): void {
    const readiness = this.#readiness;
    const { signal } = this.#term;
    const onEnd = () => {
      const { reason } = signal.reason as { reason?: unknown };
      if (reason === 'not-ready') this.#events.onNotReady(this.#unfinished ?? this.#last);
    };
    signal.addEventListener('abort', onEnd, { once: true, signal: this.#stop.signal });
    if (readiness.by === 'command') {
      void this.#ask(readiness.command, readiness.everyMs);
      return;
    }
    this.#pipe?.read((line) => this.#heard(line.trim()));
  }

  /** A line that still lacks its end, in words. */
  get #unfinished(): string | undefined {
    const partial = this.#pipe?.partial ?? '';
    if (partial === '') return undefined;
    return `${JSON.stringify(partial.slice(0, longestShown))} without a line break`;
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
