import type { Instant } from '../base/clock.ts';
import type { SeatState } from './contest.ts';

/** What is remembered of a write whose outcome may turn out later. */
export interface Attempt {
  /** Both clocks, read before the write was sent. */
  readonly sentAt: Instant;
  readonly state: SeatState;
}

/**
 * The nonces that one handle has sent last. By them alone it knows its own writes. An id or an
 * incarnation would not do: a copy of this process has the same ones
 * (docs/design/identity-and-names.md).
 *
 * Bounded: a write of ours that is forgotten counts as somebody else's, and is waited out. The one that
 * stands in the record, as far as is known, is not forgotten, however many are sent after it: in an outage
 * nobody can look.
 */
export class OwnWrites {
  static readonly limit = 64;
  /**
   * When each was sent; undefined once its outcome is known. Made with the first write: most candidates
   * only wait.
   */
  #nonces: Map<string, Instant | undefined> | undefined;
  #recorded: string | undefined;

  add(nonce: string, sentAt?: Instant): void {
    this.#nonces ??= new Map();
    // The newest is the last one.
    this.#nonces.delete(nonce);
    this.#nonces.set(nonce, sentAt);
    if (this.#nonces.size <= OwnWrites.limit) return;
    for (const oldest of this.#nonces.keys()) {
      if (oldest === this.#recorded) continue;
      this.#nonces.delete(oldest);
      return;
    }
  }

  /** A write of ours is known to have landed: what was sent before it lands no more. */
  settle(nonce: string): void {
    this.#recorded = nonce;
    for (const each of this.#nonces?.keys() ?? []) this.#nonces?.set(each, undefined);
  }

  /** What operators write keeps the nonce, and so stays ours. */
  wrote(record: { readonly nonce: string } | undefined): boolean {
    if (record === undefined || this.#nonces?.has(record.nonce) !== true) return false;
    this.#recorded = record.nonce;
    return true;
  }

  /**
   * Whether the record is a late write of ours: sent less than `withinMs` ago, and nobody has told us what
   * became of it. A known write may have been followed by another leader's: it can only come back with a
   * store that was set back. The same goes for one that could have been followed since it was sent.
   */
  wroteLate({ nonce }: { readonly nonce: string }, now: Instant, withinMs: number): boolean {
    const sentAt = this.#nonces?.get(nonce);
    if (sentAt === undefined) return false;
    // The monotonic clock does not count the time that a host was suspended.
    const agoMs = Math.max(now.monotonicMs - sentAt.monotonicMs, now.wallMs - sentAt.wallMs);
    return agoMs < withinMs;
  }
}

/**
 * Writes of one holder that may have landed: found again by their nonce. Bounded: a forgotten
 * attempt that lands all the same is still known as ours by `OwnWrites`, and then extends nothing.
 */
export class Attempts {
  static readonly limit = 16;
  readonly #own: OwnWrites;
  #attempts: readonly (Attempt & { readonly nonce: string })[] = [];

  constructor(own: OwnWrites) {
    this.#own = own;
  }

  add(nonce: string, attempt: Attempt): void {
    this.#own.add(nonce, attempt.sentAt);
    this.#attempts = [...this.#attempts, { ...attempt, nonce }].slice(-Attempts.limit);
  }

  /** Whether this handle has written the record. */
  wrote(record: { readonly nonce: string } | undefined): boolean {
    return this.#own.wrote(record);
  }

  find(nonce: string): Attempt | undefined {
    return this.#attempts.find((attempt) => attempt.nonce === nonce);
  }

  /**
   * The record was seen in a later state: attempts on the earlier one can no longer land, except
   * that the one found stays findable under an operator's later write, which keeps the nonce.
   */
  settle(nonce: string): void {
    this.#attempts = this.#attempts.filter((attempt) => attempt.nonce === nonce);
    this.#own.settle(nonce);
  }
}
