/// <reference lib="esnext.disposable" preserve="true" />

import type { EndReason } from '../base/reasons.ts';
import type { ActorProcess, Predecessor } from './contest.ts';

/**
 * `leading`: confirmed. `uncertain`: the last confirmation failed, the belief still holds.
 * `stopping`: the work was told to stop. `ended`: nothing is believed any more.
 */
export type TermState = 'leading' | 'uncertain' | 'stopping' | 'ended';

export interface TermOutcome {
  readonly reason: EndReason;
  /** True when the seat was given back as clean, so that a successor need not wait. */
  readonly released: boolean;
  /**
   * How long the work ran on after the belief had ended, in ms; 0 for an orderly end. While this
   * lasted, another leader's work may have run: only tokens help against that.
   */
  readonly overrunMs: number;
  /** What made the term end, where something did; else why its seat could not be given back. */
  readonly error?: unknown;
}

export interface Proclamation {
  readonly addresses?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
}

/** One spell of leading. */
export interface Term<Guard = unknown> {
  readonly election: string;
  /** The candidate's id. */
  readonly candidate: string;
  /** Strictly greater than that of every earlier term of this election. Hand it to every resource. */
  readonly token: bigint;
  /** What the backend offers for checking the token at a resource. */
  readonly guard: Guard;
  /**
   * Who led before, as far as the record knows (of other programs' leaders it knows nothing); `clean`
   * is false when nobody confirmed its end.
   */
  readonly predecessor: Predecessor | undefined;
  readonly state: TermState;
  /** Wall clock of the moment the term was announced. */
  readonly sinceUnixMs: number;
  /**
   * Aborted when the work must stop; its `reason` is a `TermEndedError`. A convenience: after a
   * stalled event loop your code can run before the abort does. `assertLeading` cannot be late.
   */
  readonly signal: AbortSignal;
  /**
   * Compares both clocks now. True for at most one process at any instant, given that clock *rates*
   * are within `clockDrift` and the store's conditional writes are linearizable. Not covered: a
   * pause of a whole virtual machine that stops both of its clocks.
   */
  isLeading(): boolean;
  /**
   * @param minMs how much belief the next step needs, default 0; less than the whole belief
   * @throws NotLeadingError unless more than `minMs` of belief is left; InvalidOptionError
   */
  assertLeading(minMs?: number): void;
  /** Belief left, in ms; 0 when it is over. */
  remaining(): number;
  /**
   * Publishes other addresses or metadata. Resolves when the record shows them.
   * @throws InvalidOptionError, the term's end, or `signal.reason`
   */
  proclaim(proclamation: Proclamation, options?: { signal?: AbortSignal }): Promise<void>;
  /**
   * Says which processes act for this term besides this one, all of them, so that on stores that
   * can prove a death a successor need not wait. Only with `actors: "declared"`. Resolves when the record shows it:
   * start them behind a gate, and open it after that. null takes the declaration back.
   * @throws InvalidOptionError, the term's end, or `signal.reason`
   */
  declareActors(
    processes: readonly ActorProcess[] | null,
    options?: { signal?: AbortSignal },
  ): Promise<void>;
  /** Asks for the end of this term; the candidate stays one. Returns at once, never throws. */
  resign(): void;
  /**
   * Resolves when the work has settled and the seat was given back or left to run out. Never
   * rejects. Awaited within the work of `lead` it never resolves, for it waits for that work: return
   * instead, or use `ended.then(…)` without waiting. With `campaign()` the work has
   * settled only when the term is disposed; `resign` alone does not say so.
   */
  readonly ended: Promise<TermOutcome>;
  /** For logs: what tells this term from others, with the token as a decimal text. */
  toJSON(): Readonly<Record<string, unknown>>;
  /**
   * The work is done: resigns, and resolves when the seat was given back.
   * @throws MisuseError within `lead`, where the term ends when the work returns
   */
  [Symbol.asyncDispose](): Promise<void>;
}
