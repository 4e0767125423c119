import type { Timing } from 'incumbent';
import { formatDuration } from 'incumbent';

/** The durations of an agent's own options. */
export interface AgentDurations {
  readonly healthEveryMs: number;
  readonly healthTimeoutMs: number;
  readonly healthFailures: number;
  readonly activeTimeoutMs: number;
  readonly standbyTimeoutMs: number;
  readonly fenceTimeoutMs: number;
  readonly fenceMethods: number;
  readonly takeoverDelayMs: number;
}

export interface AgentBounds {
  /** From the request of `failover` to the other service active and ready. */
  readonly failoverMs: number;
  /** From the agent's death or freeze to another service active. */
  readonly agentLostMs: number;
  /** The same when the first takeover fails, because no method of `--fence` has succeeded in it. */
  readonly fenceFailsOnceMs: number;
  /** From the first failing look at the service to another service active. */
  readonly serviceLostMs: number;
  /** From the agent's death or freeze to the service's process killed; with `--pid` only. */
  readonly killedWithinMs: number | undefined;
}

/** Time to kill a process and see it dead, and to start one of ours. */
export const killMs = 2_000;
/** A candidate that gave way stays out so long. */
const asideMs = 1_000;

/**
 * The longest time for each outcome, while the store answers in time and a candidate is healthy. It
 * is made of the parts on docs/guides/steer-a-service.md, in the order in which they happen.
 *
 * @param onSession the seat hangs on a session, and a successor also waits for the belief
 */
export function agentBounds(
  timing: Timing,
  own: AgentDurations,
  { hasProcess, onSession }: { readonly hasProcess: boolean; readonly onSession: boolean },
): AgentBounds {
  const { leaseMs, beliefMs, renewEveryMs, operationTimeoutMs: opMs, pollEveryMs } = timing;
  const activate = own.activeTimeoutMs + opMs;
  // Each method is killed when its time is over.
  const methods = own.fenceMethods * (own.fenceTimeoutMs + killMs);
  const fence = own.takeoverDelayMs + own.standbyTimeoutMs + methods;
  const runsOut = leaseMs * (1 + timing.clockDrift) + pollEveryMs + 3 * opMs;
  const takeover = runsOut + (onSession ? beliefMs : 0) + fence + activate;
  const released = 3 * opMs + pollEveryMs + asideMs;
  // The seat is given back, and the next winner begins with the first method.
  const failedOnce = released + fence;
  const stop = own.standbyTimeoutMs + (hasProcess ? killMs : 0);
  const notice = own.healthFailures * (own.healthEveryMs + own.healthTimeoutMs);
  const bounds = {
    // The service that does not become standby in time is killed, or fenced once the seat ran out.
    failoverMs: renewEveryMs + opMs + stop + (hasProcess ? released + activate : takeover),
    agentLostMs: takeover,
    fenceFailsOnceMs: takeover + failedOnce,
    serviceLostMs: notice + stop + (hasProcess ? released + activate : takeover),
    killedWithinMs: hasProcess ? beliefMs : undefined,
  };
  return {
    failoverMs: Math.ceil(bounds.failoverMs),
    agentLostMs: Math.ceil(bounds.agentLostMs),
    fenceFailsOnceMs: Math.ceil(bounds.fenceFailsOnceMs),
    serviceLostMs: Math.ceil(bounds.serviceLostMs),
    killedWithinMs: bounds.killedWithinMs,
  };
}

export function boundsInWords(bounds: AgentBounds): string {
  const { failoverMs, agentLostMs, fenceFailsOnceMs, serviceLostMs, killedWithinMs } = bounds;
  const span = (ms: number) => formatDuration(Math.ceil(ms / 100) * 100);
  const killed =
    killedWithinMs === undefined
      ? ''
      : `; this service is killed within ${span(killedWithinMs)} of the loss of its agent`;
  return (
    `another service is active within ${span(agentLostMs)} of the loss of an agent ` +
    `(${span(fenceFailsOnceMs)} if fencing fails once), ` +
    `${span(serviceLostMs)} of the loss of a service, ${span(failoverMs)} of a request${killed}`
  );
}
