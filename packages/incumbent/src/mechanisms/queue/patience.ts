import type { Timing } from '../../base/timing.ts';
import { bounded } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';

/**
 * How long whoever does not lead waits for an answer, in ms: no belief depends on it, and the client
 * notices by itself when its server falls silent.
 */
export function patienceMs(timing: Timing): number {
  return Math.max(timing.operationTimeoutMs, timing.leaseMs / 2);
}

/** One operation of a candidate that campaigns, in that time. */
export function askPatiently<T>(
  scope: Scope,
  what: string,
  signal: AbortSignal,
  operation: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { clock, timing, election, onAnswer } = scope;
  const name = `${what} in election "${election}"`;
  return bounded(clock, name, patienceMs(timing), signal, operation, onAnswer);
}

/** One operation, in that time. */
export type Ask = <T>(what: string, operation: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** For operators and observers. */
export function asking({ clock, timing }: Scope, signal: AbortSignal): Ask {
  return (what, operation) => bounded(clock, what, patienceMs(timing), signal, operation);
}
