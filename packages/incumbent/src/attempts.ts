import type { Instant } from './clock.ts';
import type { SeatState } from './contest.ts';

/** What is remembered of a write whose outcome may turn out later. */
export interface Attempt {
  /** Both clocks, read before the write was sent. */
  readonly sentAt: Instant;
  readonly state: SeatState;
}

/**
 * The nonces that one handle has sent last. By them alone it knows its own writes. An id or an
 * incarnation would not do: a copy of this process has the same ones (ARCHITECTURE.md, "An identity
 * that is copied").
 *
 * Bounded: a write of ours that is forgotten counts as somebody else's, and is waited out. What is found
 * in the record again is not forgotten, however many writes are refused after it.
 */
export class OwnWrites {
  static readonly limit = 64;
  /** Made with the first write: most candidates only wait. */
  #nonces: Set<string> | undefined;

  add(nonce: string): void {
    this.#nonces ??= new Set();
    // The newest is the last one.
    this.#nonces.delete(nonce);
    this.#nonces.add(nonce);
    if (this.#nonces.size <= OwnWrites.limit) return;
    for (const oldest of this.#nonces) {
      this.#nonces.delete(oldest);
      return;
    }
  }

  /** What operators write keeps the nonce, and so stays ours. */
  wrote(record: { readonly nonce: string } | undefined): boolean {
    if (record === undefined || this.#nonces?.has(record.nonce) !== true) return false;
    this.add(record.nonce);
    return true;
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
    this.#own.add(nonce);
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
  }
}
