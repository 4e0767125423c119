/**
 * The messages between supervisor and guard: one JSON object a line. An empty line from the guard
 * is a heartbeat. `id` numbers the programs of one guard; a message about one that has ended is
 * ignored.
 */

import type { Deadline } from 'incumbent';

export type ToGuard =
  /** G and K, once, before anything else: without them a guard starts nothing. */
  | { readonly do: 'margins'; readonly stopMarginMs: number; readonly killMarginMs: number }
  /** Null: it is over. */
  | { readonly do: 'belief'; readonly deadline: Deadline | null }
  | {
      readonly do: 'prepare';
      readonly id: number;
      readonly argv: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly cwd: string;
    }
  | { readonly do: 'go'; readonly id: number }
  | { readonly do: 'stop'; readonly id: number; readonly killAtMs: number }
  | { readonly do: 'signal'; readonly id: number; readonly name: ForwardedSignal }
  | { readonly do: 'heir'; readonly heir: Heir }
  /** The heir's facts of the present seat. Null: there is none to give back. */
  | { readonly do: 'seat'; readonly seat: object | null }
  | { readonly do: 'leave' };

/**
 * A process that the guard starts when the supervisor and the program are dead. It gets `input` and
 * the seat as JSON on its stdin: they may hold secrets.
 */
export interface Heir {
  /** For Node: a script and its arguments. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly input: object;
}

export type FromGuard =
  | { readonly say: 'up' }
  | { readonly say: 'prepared'; readonly id: number; readonly pid: number }
  /** Nothing was started. */
  | { readonly say: 'failed'; readonly id: number; readonly reason: string }
  | { readonly say: 'opened'; readonly id: number }
  /** Too little belief was left to open the gate, or it was being stopped. */
  | { readonly say: 'refused'; readonly id: number; readonly because: ProgramExit['because'] }
  | ({ readonly say: 'exited'; readonly id: number } & ProgramExit)
  /** Seconds after KILL the group still has a living process. */
  | { readonly say: 'lingering'; readonly id: number }
  | { readonly say: 'gone'; readonly id: number };

export type ForwardedSignal = 'SIGHUP' | 'SIGINT' | 'SIGTERM' | 'SIGUSR1' | 'SIGUSR2';

/** `code` and `signal` as Node reports them; both null where the end could not be seen. */
export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /**
   * The step that we had begun before it ended, if any: it was told to stop, belief was over, or
   * the guard was lost.
   */
  readonly because: 'itself' | 'stopped' | 'belief-over' | 'guard-lost';
}

export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
