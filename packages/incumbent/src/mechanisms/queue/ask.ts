import type { Timing } from '../../base/timing.ts';
import { bounded } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';

/**
 * The timeout of an operation on which no belief depends, in ms. It is longer than that of a
 * leader, because the client itself notices when its server falls silent.
 */
export function askTimeoutMs(timing: Timing): number {
  return Math.max(timing.operationTimeoutMs, timing.leaseMs / 2);
}

/** Runs one operation of a candidate that campaigns, within that timeout. */
export function askBounded<T>(
  scope: Scope,
  what: string,
  signal: AbortSignal,
  operation: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { clock, timing, election, onAnswer } = scope;
  const name = `${what} in election "${election}"`;
  return bounded(clock, name, askTimeoutMs(timing), signal, operation, onAnswer);
}

/** Runs one operation within that timeout. */
export type Ask = <T>(what: string, operation: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** For operators and observers. */
export function asking({ clock, timing }: Scope, signal: AbortSignal): Ask {
  return (what, operation) => bounded(clock, what, askTimeoutMs(timing), signal, operation);
}
