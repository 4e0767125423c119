/**
 * How far this machine's clock is from the store's. Candidates of ours do not need to know, as they
 * compare no clocks; Go programs do: they take the seat when *their* clock passes what ours wrote.
 */
import { formatDuration } from '../../duration.ts';
import type { Timing } from '../../timing.ts';

/** The store tells whole seconds. */
const resolutionMs = 1_000;

export class ClockComparison {
  readonly #allowanceMs: number;
  readonly #report: (error: Error) => void;
  #isOff = false;

  /** Both a Go program's clock and ours may be off by half of what lies between belief and lease. */
  constructor({ leaseMs, beliefMs }: Timing, report: (error: Error) => void) {
    this.#allowanceMs = (leaseMs - beliefMs) / 2;
    this.#report = report;
  }

  /** @param sentMs, receivedMs this machine's clock, around the answer that told `storeMs` */
  see(sentMs: number, receivedMs: number, storeMs: number | undefined): void {
    if (storeMs === undefined) return;
    const offsetMs = leastOffsetMs(sentMs, receivedMs, storeMs);
    const isOff = Math.abs(offsetMs) > this.#allowanceMs;
    if (isOff && !this.#isOff) {
      const way = offsetMs > 0 ? 'ahead of' : 'behind';
      this.#report(
        new Error(
          `this machine's clock is at least ${formatDuration(Math.abs(offsetMs))} ${way} that of ` +
            `Cloud Storage: Go programs that take part may lead beside a leader of ours beyond ` +
            `${formatDuration(2 * this.#allowanceMs)} between their clock and ours; set the clock, ` +
            'or give a longer lease',
        ),
      );
    }
    this.#isOff = isOff;
  }
}

/** How far ahead our clock is, at the least; negative: behind; 0: it may be right. */
export function leastOffsetMs(sentMs: number, receivedMs: number, storeMs: number): number {
  const earliest = sentMs - (storeMs + resolutionMs);
  const latest = receivedMs - storeMs;
  if (earliest > 0) return earliest;
  return latest < 0 ? latest : 0;
}
