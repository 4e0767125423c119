import type { Instant } from '@incumbent/zookeeper';

/** The wall clock shows whole milliseconds; smaller differences are rounding (see `incumbent`). */
const roundingMs = 5;

/**
 * Until when a primary is believed in: for so long after the last confirmation was *sent*, by both
 * clocks. The monotonic clock stands still while a host is suspended, the wall clock steps; whichever
 * says "over" is right. What one of them has said, the other remembers: at every look each deadline
 * is brought forward to what the other leaves.
 *
 * Unlike a leader's belief it may begin again: a later confirmation says that nothing has changed.
 */
export class Belief {
  #deadline: Instant | undefined;
  #sentMs = Number.NEGATIVE_INFINITY;

  /** When the latest confirmation was sent, on the monotonic clock. */
  get sentMs(): number {
    return this.#sentMs;
  }

  /** A confirmation that was sent at `sentAt` has come. One that is older than another says nothing new. */
  extend(sentAt: Instant, viewMs: number): void {
    if (sentAt.monotonicMs <= this.#sentMs) return;
    this.#sentMs = sentAt.monotonicMs;
    this.#deadline = {
      monotonicMs: sentAt.monotonicMs + viewMs,
      wallMs: sentAt.wallMs + Math.floor(viewMs),
    };
  }

  /** Time left by the clock that says less; zero or less when over. */
  remainingMs(now: Instant): number {
    if (this.#deadline === undefined) return Number.NEGATIVE_INFINITY;
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
}
