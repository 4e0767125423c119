import type { Timing } from 'incumbent';
import { startSlackMs } from '../harness/start-slack.ts';

/** A client connects anew after pauses that grow; after an outage of seconds they may be as long. */
const reconnectMs = 3_000;

const most = (timings: readonly Timing[], pick: (timing: Timing) => number) =>
  Math.max(...timings.map(pick));

/**
 * How long nobody may work on a lease store that is up, with nobody struck:
 *
 *     n·D·(1+ρ) + 1.1·P + 3·X + reconnect + start
 *
 * - n·D: a dead leader's last record is waited out for a lease by an observed time. With
 *   announcements it may be read once in a lease only, so it may be first seen when it is a lease
 *   old. A store that may have lost something is waited out for a lease more.
 * - 1.1·P: a poll with its jitter.
 * - 3·X: read, win, commit who acts, each at its slowest.
 */
export function leaseBoundMs(timings: readonly Timing[], leases: number): number {
  return (
    leases * most(timings, ({ leaseMs, clockDrift }) => leaseMs * (1 + clockDrift)) +
    1.1 * most(timings, ({ pollEveryMs }) => pollEveryMs) +
    3 * most(timings, ({ operationTimeoutMs }) => operationTimeoutMs) +
    reconnectMs +
    startSlackMs
  );
}

/**
 * The same in a queue of places on leases of etcd. Every new leader of the cluster grants the lease
 * of a dead leader anew for its whole time. It finds the lease over up to 0.5 s late, and then the
 * successor waits the belief out.
 */
export function queueBoundMs(timings: readonly Timing[], lateMs: number): number {
  return (
    most(timings, ({ leaseMs }) => leaseMs) +
    lateMs +
    most(timings, ({ beliefMs, clockDrift: rho }) => (beliefMs * (1 + rho)) / (1 - rho)) +
    3 * most(timings, ({ operationTimeoutMs }) => operationTimeoutMs) +
    reconnectMs +
    startSlackMs
  );
}
