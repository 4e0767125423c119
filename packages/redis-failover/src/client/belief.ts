import type { Instant } from '@incumbent/zookeeper';
import { Countdown, deadlineAfter } from 'incumbent';

/**
 * Until when a primary is believed in: for so long after the last confirmation was *sent*, by both
 * clocks (the law and its proof are in src/deadline.ts of `incumbent`).
 *
 * Unlike a leader's belief it may begin again: a later confirmation says that nothing has changed.
 */
export class Belief {
  readonly #countdown = new Countdown();
  #sentMs = Number.NEGATIVE_INFINITY;

  /** When the latest confirmation was sent, on the monotonic clock. */
  get sentMs(): number {
    return this.#sentMs;
  }

  /** A confirmation that was sent at `sentAt` has come. One that is older than another says nothing new. */
  extend(sentAt: Instant, viewMs: number): void {
    if (sentAt.monotonicMs <= this.#sentMs) return;
    this.#sentMs = sentAt.monotonicMs;
    this.#countdown.set(deadlineAfter(sentAt, viewMs));
  }

  /** Time left by the clock that says less; zero or less when over. */
  remainingMs(now: Instant): number {
    return this.#countdown.look(now);
  }
}
