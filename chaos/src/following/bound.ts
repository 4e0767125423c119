import type { Timing } from 'incumbent';
import type { Fault } from './plan.ts';

/** For the machine, not for us: processes that wait for a core. Stalls that are seen come on top. */
export const machineMs = 1_000;

/**
 * How long after the fault another one leads:
 *
 *     W + 1.1·P + 3·X + machine
 *
 * - W after `kill` and `freeze`: D·(1+ρ), for others may have to see the last record unchanged for a
 *   lease, by a slow clock. (Mostly the file store proves a death sooner.)
 * - W after `resign`: 3·X, the seat is given back.
 * - W after `vacate`: R + X until the leader has seen the request, then as after `resign`.
 * - 1.1·P: a poll with its jitter, where nothing announced the change.
 * - 3·X: read, win, and commit who acts for the term, each at its slowest.
 */
export function takeoverBoundMs(fault: Fault, timing: Timing): number {
  const { pollEveryMs, operationTimeoutMs } = timing;
  return waitMs(fault, timing) + 1.1 * pollEveryMs + 3 * operationTimeoutMs + machineMs;
}

function waitMs(fault: Fault, timing: Timing): number {
  const { leaseMs, clockDrift, renewEveryMs, operationTimeoutMs } = timing;
  const releaseMs = 3 * operationTimeoutMs;
  switch (fault) {
    case 'kill':
    case 'freeze':
      return leaseMs * (1 + clockDrift);
    case 'resign':
      return releaseMs;
    case 'vacate':
      return renewEveryMs + operationTimeoutMs + releaseMs;
    default:
      return fault satisfies never;
  }
}

/**
 * How long after another one leads calls may fail:
 *
 *     1.1·P + X + machine
 *
 * that is, when an observer that was not woken looks, at its slowest.
 */
export function followBoundMs({ pollEveryMs, operationTimeoutMs }: Timing): number {
  return 1.1 * pollEveryMs + operationTimeoutMs + machineMs;
}
