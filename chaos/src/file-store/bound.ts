import type { Timing } from 'incumbent';
import { startSlackMs } from '../harness/start-slack.ts';
import type { Fault } from './plan.ts';

/**
 * How long after the fault (or after a thaw, if nobody had taken over by then) somebody must work:
 *
 *     W + D·(1+ρ) + 1.1·P + 3·X + start
 *
 * - W: until the old leader has written for the last time (below).
 * - D·(1+ρ): the others may have to see its last record unchanged for a lease, by a slow clock.
 * - 1.1·P: a poll with its jitter, where nothing announced the change.
 * - 3·X: read, win, and commit who acts for the term, each at its slowest.
 * - start: `startSlackMs`.
 *
 * Most takeovers are far quicker: a death is proved, or the seat given back. The table tells.
 */
export function takeoverBoundMs(fault: Fault, timing: Timing): number {
  const { leaseMs, clockDrift, pollEveryMs, operationTimeoutMs } = timing;
  return (
    lastWriteMs(fault, timing) +
    leaseMs * (1 + clockDrift) +
    1.1 * pollEveryMs +
    3 * operationTimeoutMs +
    startSlackMs
  );
}

/** W. A supervisor that was killed or is frozen writes no more. */
function lastWriteMs(fault: Fault, timing: Timing): number {
  const { renewEveryMs, operationTimeoutMs, stopMarginMs, stopTimeoutMs } = timing;
  switch (fault) {
    case 'kill supervisor':
    case 'kill both':
    case 'kill all':
    case 'kill next':
    case 'freeze supervisor':
    case 'freeze both':
    case 'kill and freeze':
      return 0;
    case 'kill guard':
    case 'freeze guard':
      // The supervisor notices the silence, kills the group and gives the seat back.
      return Math.max(1_000, stopMarginMs) + 250 + operationTimeoutMs;
    case 'resign':
      // It sees the request at its next renewal, stops its program, gives the seat back.
      return renewEveryMs + 2 * operationTimeoutMs + stopTimeoutMs;
    default:
      return fault satisfies never;
  }
}
