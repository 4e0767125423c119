import type { Clock, Instant } from './clock.ts';
import { readClocks } from './clock.ts';

/**
 * The wall clock shows whole milliseconds. Smaller differences are not passed on to the monotonic
 * deadline: rounding would add up, and frequent looks shorten a belief.
 */
const roundingMs = 5;

/**
 * How long a leader may think that it leads: until H after the last confirmation was *sent*, by
 * both clocks. The monotonic clock is immune to steps but stands still while a Linux host is
 * suspended; the wall clock steps but counts suspension. Whichever says "over" is right.
 *
 * A wall clock that is set back would hide a suspension, whether that came before it or after. So at
 * every look each deadline is brought forward to what the other clock leaves: what one of them has
 * said once, the other remembers. What stays uncovered: the clock is set back *and* the host
 * suspended between two looks (at the longest one renewal).
 */
export class Belief {
  readonly #clock: Clock;
  readonly #beliefMs: number;
  #deadline: Instant | undefined;
  #sentMs: number;

  /** @param sentAt both clocks, read before the request that won the seat was sent */
  constructor(clock: Clock, beliefMs: number, sentAt: Instant) {
    this.#clock = clock;
    this.#beliefMs = beliefMs;
    this.#deadline = this.#after(sentAt);
    this.#sentMs = sentAt.monotonicMs;
  }

  /**
   * A confirmation that was sent at `sentAt` has arrived.
   * @returns false when the belief was over before: a late reply never revives a term
   */
  extend(sentAt: Instant): boolean {
    if (this.#deadline === undefined || this.remainingMs() <= 0) return false;
    if (sentAt.monotonicMs > this.#sentMs) {
      this.#deadline = this.#after(sentAt);
      this.#sentMs = sentAt.monotonicMs;
    }
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
    if (wallLeftMs > leftMs) {
      this.#deadline = { monotonicMs, wallMs: now.wallMs + leftMs };
      return leftMs;
    }
    if (wallLeftMs < leftMs - roundingMs) {
      this.#deadline = { monotonicMs: now.monotonicMs + wallLeftMs, wallMs };
    }
    return wallLeftMs;
  }

  /** When belief ends, on both clocks; undefined once it was ended. */
  get deadline(): Instant | undefined {
    return this.#deadline;
  }

  #after(sentAt: Instant): Instant {
    return {
      monotonicMs: sentAt.monotonicMs + this.#beliefMs,
      // Both readings are rounded down, so a fraction would be believed in for up to 1 ms too long.
      wallMs: sentAt.wallMs + Math.floor(this.#beliefMs),
    };
  }
}
