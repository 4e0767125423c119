import type { Timing } from 'incumbent';
import { startSlackMs } from '../harness/start-slack.ts';

/** A client connects anew after pauses that grow; after an outage of seconds they may be as long. */
const reconnectMs = 3_000;

/**
 * How long after the last change a shard may be without its owner, or the shares uneven:
 *
 *     3·D·(1+ρ) + 3·R + 1.1·P + 6·X + settle + reconnect + start
 *
 * - 2 D: the coordinator and another process died together, where the store tells no age.
 * - D: a store that may have lost something is waited out, and so is a shard that was given up unasked.
 * - 3·R: a process that was silent for so long is moved nothing.
 * - 1.1·P: a poll with its jitter, where nothing announced the change.
 * - 6·X: join, seal, ask, give up, grant, begin, each at its slowest.
 */
export function balanceBoundMs(timing: Timing, settleMs: number): number {
  const { leaseMs, clockDrift, renewEveryMs, pollEveryMs, operationTimeoutMs } = timing;
  return (
    3 * leaseMs * (1 + clockDrift) +
    3 * renewEveryMs +
    1.1 * pollEveryMs +
    6 * operationTimeoutMs +
    settleMs +
    reconnectMs +
    startSlackMs
  );
}
