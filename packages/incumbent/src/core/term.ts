/// <reference lib="esnext.disposable" preserve="true" />

import type { EndReason } from '../base/reasons.ts';
import type { ActorProcess, Predecessor } from './contest.ts';

/**
 * - `leading`: the last confirmation arrived.
 * - `uncertain`: the last confirmation failed. The belief still holds.
 * - `stopping`: the work was told to stop.
 * - `ended`: belief is over.
 */
export type TermState = 'leading' | 'uncertain' | 'stopping' | 'ended';

/** How a term has ended. */
export interface TermOutcome {
  /** Why the term ended. The first reason counts. */
  readonly reason: EndReason;
  /** True when the seat was given back as clean, so that a successor need not wait. */
  readonly released: boolean;
  /**
   * How long the work ran on after the belief had ended, in ms. 0 for an orderly end. During that
   * time another leader's work may have run. Only tokens help against that.
   */
  readonly overrunMs: number;
  /**
   * The error that ended the term. Without one, the error that kept its seat from being given back.
   */
  readonly error?: unknown;
}

/** The facts that a leader publishes about itself. A field that is left out stays as it was. */
export interface Proclamation {
  readonly addresses?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
}

/** One spell of leading. */
export interface Term<Guard = unknown> {
  readonly election: string;
  /** The candidate's id. */
  readonly candidate: string;
  /**
   * Strictly greater than the token of every earlier term of this election. Hand it to every
   * resource.
   */
  readonly token: bigint;
  /** The number of the seat: 1, or 1 to `seats`. Tokens of different seats say nothing of each other. */
  readonly seat: number;
  /** The backend's help for checking the token at a resource, if it offers any. */
  readonly guard: Guard;
  /**
   * The leader before, as far as the record knows. It knows nothing of leaders of other programs.
   * `clean` is false when the end of that leader was never confirmed.
   */
  readonly predecessor: Predecessor | undefined;
  readonly state: TermState;
  /** The time at which the term was announced, by this process's wall clock. */
  readonly sinceUnixMs: number;
  /**
   * Aborts when the work must stop. Its `reason` is a `TermEndedError`. It is a convenience: after
   * a stalled event loop, your code can run before the abort does. `assertLeading` cannot be late.
   */
  readonly signal: AbortSignal;
  /**
   * Reads both clocks now. True for at most one process at any instant, if clock *rates* are within
   * `clockDrift` and the store's conditional writes are linearizable. Not covered: a pause of a
   * whole virtual machine that stops both of its clocks, and a copy of a process that leads.
   */
  isLeading(): boolean;
  /**
   * Call it right before each step that only a leader may take.
   * @param minMs how much belief (time in which this process surely leads) the next step needs, in
   * ms. Default 0. Must be less than the whole belief
   * @throws NotLeadingError when `minMs` or less of belief is left
   * @throws InvalidOptionError
   */
  assertLeading(minMs?: number): void;
  /** Belief that is left, in ms. 0 when it is over. */
  remaining(): number;
  /**
   * Publishes other addresses or metadata. Resolves when the record shows them.
   * @throws InvalidOptionError, the term's end, or `signal.reason`
   */
  proclaim(proclamation: Proclamation, options?: { signal?: AbortSignal }): Promise<void>;
  /**
   * The work is prepared: requests may come. Only with `ready: 'manual'`, and once a term: a later
   * call waits for the first. Resolves when the record shows it. Observers and routers may see it
   * sooner, so call it when the work can serve.
   *
   * A signal that aborts ends the waiting, and takes nothing back.
   * @throws MisuseError without `ready: 'manual'`
   * @throws InvalidOptionError, the term's end, or `signal.reason`
   */
  ready(options?: { signal?: AbortSignal }): Promise<void>;
  /** True from the begin of the term. With `ready: 'manual'`, from the call of `ready()`. */
  readonly isReady: boolean;
  /**
   * Declares all processes that act for this term besides this one. On a store that can prove a
   * death, a successor then need not wait once all of them are dead. Only with
   * `actors: "declared"`. Resolves when the record shows the list. So start the processes behind a
   * gate, and open it after that. Null takes the declaration back.
   * @throws InvalidOptionError, the term's end, or `signal.reason`
   */
  declareActors(
    processes: readonly ActorProcess[] | null,
    options?: { signal?: AbortSignal },
  ): Promise<void>;
  /**
   * Asks for the end of this term. The candidate stays a candidate. Returns at once, never throws.
   */
  resign(): void;
  /**
   * Resolves when the work has settled and the seat was given back or left to run out. Never
   * rejects. Do not await it within the work of `lead`: it waits for that work, so it would never
   * resolve. Return instead, or use `ended.then(…)` without waiting. With `campaign()` the work has
   * settled only when the term is disposed. `resign` alone does not settle it.
   */
  readonly ended: Promise<TermOutcome>;
  /** For logs: the fields that tell this term from others, with the token as a decimal text. */
  toJSON(): Readonly<Record<string, unknown>>;
  /**
   * The work is done. Resigns, and resolves when the seat was given back or left to run out.
   * @throws MisuseError within `lead`, where the term ends when the work returns
   */
  [Symbol.asyncDispose](): Promise<void>;
}
