import type { Clock, Instant } from './clock.ts';
import { readClocks } from './clock.ts';
import type { Deadline } from './deadline.ts';
import { Countdown, deadlineAfter } from './deadline.ts';

/**
 * How long a leader may think that it leads: until H after the last confirmation was *sent*, by
 * both clocks. The law is in deadline.ts, its proof in docs/design/time.md.
 */
export class Belief {
  readonly #clock: Clock;
  readonly #beliefMs: number;
  readonly #countdown = new Countdown();
  #sentMs: number;

  /** @param sentAt both clocks, read before the request that won the seat was sent */
  constructor(clock: Clock, beliefMs: number, sentAt: Instant) {
    this.#clock = clock;
    this.#beliefMs = beliefMs;
    this.#countdown.set(deadlineAfter(sentAt, beliefMs));
    this.#sentMs = sentAt.monotonicMs;
  }

  /**
   * A confirmation that was sent at `sentAt` has arrived.
   * @returns false when the belief was over before, or is over by now. A late reply never revives a
   * term.
   */
  extend(sentAt: Instant): boolean {
    if (this.remainingMs() <= 0) return false;
    if (sentAt.monotonicMs > this.#sentMs) {
      this.#countdown.set(deadlineAfter(sentAt, this.#beliefMs));
      this.#sentMs = sentAt.monotonicMs;
    }
    return this.remainingMs() > 0;
  }

  /** Ends the belief, whatever the clocks say. */
  end(): void {
    this.#countdown.clear();
  }

  /** Time left in ms, by the clock that says less. Zero or less: the belief is over. */
  remainingMs(): number {
    return this.#countdown.look(readClocks(this.#clock));
  }

  /** The end of the belief, as of the last look. Undefined after `end`. */
  get deadline(): Deadline | undefined {
    return this.#countdown.deadline;
  }
}
