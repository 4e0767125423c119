/**
 * The time by the store, as far as its answers tell. Candidates of ours compare no clocks. But Go
 * programs go by the times that are written, each by its own clock. So all of them are measured by
 * the store's clock, whatever this machine's wall clock says.
 */
import type { Instant } from '../../base/clock.ts';
import { formatDuration } from '../../base/duration.ts';

/** The store tells whole seconds, rounded down. */
const resolutionMs = 1_000;

export class StoreClock {
  readonly #clockDrift: number;
  readonly #farMs: number;
  readonly #report: (error: Error) => void;
  #latest: { readonly sent: Instant; readonly storeMs: number } | undefined;
  #isOff = false;

  /**
   * @param clockDrift how far the rate of our clocks may be off
   * @param farMs when this machine's wall clock is further off than this, it is reported
   */
  constructor(clockDrift: number, farMs: number, report: (error: Error) => void) {
    this.#clockDrift = clockDrift;
    this.#farMs = farMs;
    this.#report = report;
  }

  /**
   * @param sent both our clocks, before the request
   * @param receivedWallMs after its answer, which told `storeMs`
   */
  see(sent: Instant, receivedWallMs: number, storeMs: number | undefined): void {
    if (storeMs === undefined) return;
    this.#latest = { sent, storeMs };
    const offsetMs = leastOffsetMs(sent.wallMs, receivedWallMs, storeMs);
    const isOff = Math.abs(offsetMs) > this.#farMs;
    if (isOff && !this.#isOff) {
      const way = offsetMs > 0 ? 'ahead of' : 'behind';
      this.#report(
        new Error(
          `this machine's clock is at least ${formatDuration(Math.abs(offsetMs))} ${way} that of Cloud ` +
            'Storage, more than maxClockSkew: leaders of ours go by the store, but a Go program on a ' +
            'clock like this may lead beside others; set it right',
        ),
      );
    }
    this.#isOff = isOff;
  }

  /** The latest that the store's clock can show now. Undefined: it has told no time yet. */
  latestMs(now: Instant): number | undefined {
    if (this.#latest === undefined) return undefined;
    const { sent, storeMs } = this.#latest;
    // The monotonic clock stands still while a host is suspended, and the other may be set back.
    const passedMs = Math.max(now.monotonicMs - sent.monotonicMs, now.wallMs - sent.wallMs);
    return storeMs + resolutionMs + passedMs / (1 - this.#clockDrift);
  }
}

/** How far our clock is ahead at the least, in ms. Negative: behind. 0: it may be right. */
export function leastOffsetMs(sentMs: number, receivedMs: number, storeMs: number): number {
  const earliest = sentMs - (storeMs + resolutionMs);
  const latest = receivedMs - storeMs;
  if (earliest > 0) return earliest;
  return latest < 0 ? latest : 0;
}
