import type { Timing, TimingLimits, TimingOptions } from 'incumbent';
import type { TimingFlags } from './options.ts';

/**
 * The durations of a command line as the library takes them, without those that were not given. The
 * lease is left out where it is the timeout of a session: connecting has asked for that already.
 */
export function timingOf(flags: TimingFlags, limits: TimingLimits = {}): TimingOptions {
  const lease = limits.sessionTimeoutMs === undefined ? flags.lease : undefined;
  const { belief, stopMargin, renewEvery, operationTimeout, stopTimeout } = flags;
  const durations = { lease, belief, stopMargin, renewEvery, operationTimeout, stopTimeout };
  return Object.fromEntries(
    Object.entries(durations).filter(([, duration]) => duration !== undefined),
  );
}

/** K: how long before the end of belief a program is killed that TERM, at G, did not stop. */
export function killMarginMs({ stopMarginMs }: Timing): number {
  return Math.min(500, stopMarginMs / 3);
}

/** TERM has to reach the program, and KILL its group, before belief ends: shorter is no use. */
export const shortestRunLeaseMs = 2_000;
