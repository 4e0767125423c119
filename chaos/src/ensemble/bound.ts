import type { Timing } from 'incumbent';
import { startSlackMs } from '../harness/start-slack.ts';

/**
 * How long nobody may work while a quorum of servers is up and nobody is struck:
 *
 *     T + 2·tick + H·(1+ρ)/(1−ρ) + 3·X + start
 *
 * - T: the servers keep the place of a leader that is gone for its session timeout, counted anew
 *   whenever they elect a leader among themselves. Candidates that cannot lead (frozen, cut off) and
 *   stand before others lose their places at the same time.
 * - 2·tick: the servers look at sessions once in a tick, and find them over up to a tick late.
 * - H·(…): the successor waits the belief of an unclean leader out.
 * - 3·X: it lists, reads and commits, each at its slowest.
 * - start: `startSlackMs`, for the machine, not for us.
 *
 * It counts from the last of: an effect, a strike, the moment in which a majority of the servers was
 * seen to serve. How long the servers take to elect a leader is theirs, so it is measured and
 * reported, and only bounded by `electionBoundMs`.
 * @param timings of all candidates: the slowest counts, because it may be the one that is struck
 */
export function leaderBoundMs(timings: readonly Timing[], tickMs: number): number {
  const most = (pick: (timing: Timing) => number) => Math.max(...timings.map(pick));
  return (
    most(({ leaseMs }) => leaseMs) +
    2 * tickMs +
    most(({ beliefMs, clockDrift: rho }) => (beliefMs * (1 + rho)) / (1 - rho)) +
    3 * most(({ operationTimeoutMs }) => operationTimeoutMs) +
    startSlackMs
  );
}

/**
 * How long the servers may take to serve again when a majority of them runs and can talk. A frozen
 * leader is missed after `syncLimit` ticks, and lost votes are cast again after pauses that grow.
 * Servers that start do so on a machine that does other things as well. Usually 2 to 5 s, and 30 s
 * were seen with ten processes waiting for each processor.
 */
export function electionBoundMs(tickMs: number, syncLimit: number): number {
  return syncLimit * tickMs + 60_000;
}
