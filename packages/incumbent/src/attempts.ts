import type { Instant } from './clock.ts';
import type { SeatState } from './contest.ts';

/** What is remembered of a write whose outcome may turn out later. */
export interface Attempt {
  /** Both clocks, read before the write was sent. */
  readonly sentAt: Instant;
  readonly state: SeatState;
}

/**
 * Writes of one holder that may have landed: found again by their nonce. Bounded: a forgotten
 * attempt that lands all the same is still known as ours by incarnation and token, and then
 * extends nothing.
 */
export class Attempts {
  static readonly limit = 16;
  #attempts: readonly (Attempt & { readonly nonce: string })[] = [];

  add(nonce: string, attempt: Attempt): void {
    this.#attempts = [...this.#attempts, { ...attempt, nonce }].slice(-Attempts.limit);
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
