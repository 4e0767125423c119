import type { Instant } from '@incumbent/zookeeper';
import { Countdown, deadlineAfter } from 'incumbent';

/**
 * How long a client may rely on a primary: for `viewMs` after the last confirmation was *sent*, by
 * both clocks. The rule and its proof are in src/base/deadline.ts of `incumbent`.
 *
 * Unlike a leader's lease it may begin again after its end: a later confirmation says that nothing
 * has changed.
 */
export class Belief {
  readonly #countdown = new Countdown();
  #sentMs = Number.NEGATIVE_INFINITY;

  /** When the latest confirmation was sent, on the monotonic clock. */
  get sentMs(): number {
    return this.#sentMs;
  }

  /**
   * Takes a confirmation that was sent at `sentAt`. One that is older than the latest says nothing
   * new.
   */
  extend(sentAt: Instant, viewMs: number): void {
    if (sentAt.monotonicMs <= this.#sentMs) return;
    this.#sentMs = sentAt.monotonicMs;
    this.#countdown.set(deadlineAfter(sentAt, viewMs));
  }

  /** The time left, by the clock that says less; zero or less when it is over. */
  remainingMs(now: Instant): number {
    return this.#countdown.look(now);
  }
}
