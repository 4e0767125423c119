import type { Clock, Instant } from './clock.ts';
import { readClocks } from './clock.ts';

/**
 * How long a leader may think that it leads: until H after the last confirmation was *sent*, by
 * both clocks. The monotonic clock is immune to steps but stands still while a Linux host is
 * suspended; the wall clock steps but counts suspension. Whichever says "over" is right.
 *
 * A wall clock that was set back would let a suspension after it pass unseen. So at every look the
 * wall deadline is brought forward to what the monotonic clock leaves. What stays uncovered: the
 * clock is set back *and* the host suspended between two looks (at the longest one renewal).
 */
export class Belief {
  readonly #clock: Clock;
  readonly #beliefMs: number;
  #deadline: Instant | undefined;

  /** @param sentAt both clocks, read before the request that won the seat was sent */
  constructor(clock: Clock, beliefMs: number, sentAt: Instant) {
    this.#clock = clock;
    this.#beliefMs = beliefMs;
    this.#deadline = this.#after(sentAt);
  }

  /**
   * A confirmation that was sent at `sentAt` has arrived.
   * @returns false when the belief was over before: a late reply never revives a term
   */
  extend(sentAt: Instant): boolean {
    if (this.#deadline === undefined || this.remainingMs() <= 0) return false;
    const deadline = this.#after(sentAt);
    if (deadline.monotonicMs > this.#deadline.monotonicMs) this.#deadline = deadline;
    return true;
  }

  /** Over, whatever the clocks say. */
  end(): void {
    this.#deadline = undefined;
  }

  /** Time left by the clock that says less; zero or less when over. */
  remainingMs(): number {
    if (this.#deadline === undefined) return Number.NEGATIVE_INFINITY;
    const now = readClocks(this.#clock);
    const { monotonicMs, wallMs } = this.#deadline;
    const leftMs = monotonicMs - now.monotonicMs;
    const wallLeftMs = wallMs - now.wallMs;
    if (wallLeftMs <= leftMs) return wallLeftMs;
    this.#deadline = { monotonicMs, wallMs: now.wallMs + leftMs };
    return leftMs;
  }

  /** When belief ends, on both clocks; undefined once it was ended. */
  get deadline(): Instant | undefined {
    return this.#deadline;
  }

  #after(sentAt: Instant): Instant {
    return {
      monotonicMs: sentAt.monotonicMs + this.#beliefMs,
      wallMs: sentAt.wallMs + this.#beliefMs,
    };
  }
}
