import type { Timing } from '../../base/timing.ts';

/**
 * How long whoever does not lead waits for an answer, in ms: no belief depends on it, and the client
 * notices by itself when its server falls silent.
 */
export function patienceMs(timing: Timing): number {
  return Math.max(timing.operationTimeoutMs, timing.leaseMs / 2);
}
