import type { Instant } from './clock.ts';

/**
 * The end of something on both clocks, and the instant that it counts from. Another process of the
 * same machine needs both to go on judging it.
 */
export interface Deadline extends Instant {
  /** Both clocks, read before the request was sent that this deadline counts from. */
  readonly sentAt: Instant;
  /** Time since `sentAt` that only the wall clock has counted, in ms. It is taken off already. */
  readonly lostMs: number;
}

/** `ms` after `sentAt`, by both clocks. */
export function deadlineAfter(sentAt: Instant, ms: number): Deadline {
  return {
    monotonicMs: sentAt.monotonicMs + ms,
    // Both readings are rounded down. With a fraction, belief could last up to 1 ms too long.
    wallMs: sentAt.wallMs + Math.floor(ms),
    sentAt,
    lostMs: 0,
  };
}

/**
 * The wall clock shows whole milliseconds. Smaller differences do not count as lost. Otherwise
 * rounding would add up, and frequent looks would shorten a belief.
 */
const roundingMs = 5;

/** No lease is longer, so no deadline counts from an instant that is longer ago. */
const longestMs = 3_600_000;

/** The wall clock has run ahead of the monotonic one between two looks. */
interface Loss {
  /** The look before, on the monotonic clock, and the look that found it. */
  readonly beforeMs: number;
  readonly atMs: number;
  /** The gap (wall clock minus monotonic clock) before and after. */
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * The two-clock law: how much time is left until a deadline, by two clocks of which each may fail.
 *
 * The monotonic clock never steps, but stands still while a Linux host is suspended. The wall clock
 * counts that time, but may be set. So a suspension widens the *gap* (wall minus monotonic) by its
 * length, and a clock that is set back narrows it. A look compares the gap with the narrowest one
 * since the last loss. If it is wider, the monotonic clock did not count the difference. That time
 * is *lost*: taken off for good, whatever the wall clock says later.
 *
 * So belief of H is over H/(1−ρ) after its sending, at the latest: docs/design/time.md has the proof.
 * A widening of at most `roundingMs` is subtracted only while it lasts.
 *
 * A new deadline may count from an instant before the last looks: its reply was under way. Time
 * that those looks found lost since that instant is lost for the new deadline as well. Another
 * judge may have found the same loss (`lostMs`), which counts once.
 *
 * Not covered: the host is suspended *and* the wall clock is set back between two looks.
 *
 * Three copies: this class, the worker's in watchdog.ts, and cli/guard/guard.cjs. The other two
 * must stay self-contained. cli/test/two-clock-law.test.ts runs all three side by side.
 */
export class Countdown {
  #isSet = false;
  #endMs = 0;
  /** `#endMs` plus the narrowest gap since the last loss. */
  #wallEndMs = Number.POSITIVE_INFINITY;
  #sentAt: Instant = { monotonicMs: 0, wallMs: 0 };
  #lostMs = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #losses: Loss[] = [];

  /** Sets a new deadline. Those set before count from the same instant or from an earlier one. */
  set({ monotonicMs, wallMs, sentAt, lostMs }: Deadline): void {
    const sentMs = sentAt.monotonicMs;
    let gapMs = sentAt.wallMs - sentMs;
    let seenMs = 0;
    this.#losses = this.#losses.filter(({ atMs }) => atMs >= sentMs);
    for (const { beforeMs, fromMs, toMs } of this.#losses) {
      // A look after the sending has found the gap as narrow as that.
      if (beforeMs > sentMs) gapMs = Math.min(gapMs, fromMs);
      seenMs += Math.max(0, toMs - gapMs);
      gapMs = toMs;
    }
    const narrowestMs = this.#wallEndMs - this.#endMs;
    const keepsGap = this.#losses.length > 0 || narrowestMs < wallMs - monotonicMs;
    const moreMs = Math.max(0, seenMs - lostMs);
    this.#isSet = true;
    this.#endMs = monotonicMs - moreMs;
    this.#wallEndMs =
      this.#lookedMs >= sentMs && keepsGap ? this.#endMs + narrowestMs : wallMs - moreMs;
    this.#lostMs = lostMs + moreMs;
    this.#sentAt = sentAt;
  }

  /** No deadline is left: the time is over. */
  clear(): void {
    this.#isSet = false;
  }

  /**
   * Time left in ms. Zero or less: the deadline is over. Call it often: a suspension and a clock
   * that is set back between the same two looks hide each other.
   */
  look({ monotonicMs: nowMs, wallMs }: Instant): number {
    const leftMs = this.#endMs - nowMs;
    const wallLeftMs = this.#wallEndMs - wallMs;
    const widerMs = leftMs - wallLeftMs;
    if (widerMs < 0) {
      this.#wallEndMs = wallMs + leftMs;
    } else if (widerMs > roundingMs) {
      const toMs = wallMs - nowMs;
      this.#losses = this.#losses.filter(({ atMs }) => atMs > nowMs - longestMs);
      this.#losses.push({ beforeMs: this.#lookedMs, atMs: nowMs, fromMs: toMs - widerMs, toMs });
      this.#endMs = nowMs + wallLeftMs;
      this.#lostMs += widerMs;
    }
    this.#lookedMs = nowMs;
    return this.#isSet ? Math.min(leftMs, wallLeftMs) : Number.NEGATIVE_INFINITY;
  }

  /**
   * The deadline that was set, less what the looks until now found lost. Undefined when there is
   * none.
   */
  get deadline(): Deadline | undefined {
    if (!this.#isSet) return undefined;
    return {
      monotonicMs: this.#endMs,
      wallMs: this.#wallEndMs,
      sentAt: this.#sentAt,
      lostMs: this.#lostMs,
    };
  }
}
