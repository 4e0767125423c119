import type { Timing } from './messages.ts';

export const timing: Timing = {
  sessionMs: 3_000,
  tickMs: 200,
  checkEveryMs: 250,
  nodeTimeoutMs: 300,
  maxFailures: 3,
  viewMs: 1_200,
};

/** For the machine, not for us: processes that wait for a core. Stalls that are seen come on top. */
const machineMs = 4_000;

const copyMs = 3_000;
const patienceMs = 10_000;
const operatorMs = 15_000;

/**
 * How long after everything is healed clients write again, replicas follow and `nodes` is true:
 *
 *     2·(T + 2 ticks) + M + D + 2·(1.1·V + 12·X) + R + P + machine
 *
 * - T: the session of a manager that was killed right at the end, and the wait for its belief.
 * - M: a session that expired unnoticed is set up anew, T.
 * - D: maxFailures·(checkEvery + X). A node that was just thawed may count as down, or as up.
 * - V, X: a move takes the views of clients, and every command at its slowest. There may be two: one
 *   that a manager began which is gone, and one more.
 * - R: a replica whose primary was away tries again once a second, and copies everything, 3 s.
 * - P: a primary that came back is patient with the others for 10 s. Then an operator looks, decides
 *   once for each of the others, and each command takes a second, 15 s.
 */
export function settleBoundMs({
  sessionMs,
  tickMs,
  checkEveryMs,
  nodeTimeoutMs,
  maxFailures,
  viewMs,
}: Timing): number {
  const election = 2 * (sessionMs + 2 * tickMs) + sessionMs;
  const detection = maxFailures * (checkEveryMs + nodeTimeoutMs);
  const move = 1.1 * viewMs + 12 * nodeTimeoutMs;
  return election + detection + 2 * move + copyMs + patienceMs + operatorMs + machineMs;
}
