/** Lets a kubelet restart a leader that cannot stop leading. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Clock } from '../../base/clock.ts';
import { systemClock } from '../../base/clock.ts';
import type { Duration } from '../../base/duration.ts';
import { parseDuration } from '../../base/duration.ts';
import type { DiagnosticEvents, DiagnosticSource } from '../../core/diagnostics.ts';

/** The options of `leaderHealthz`. */
export interface HealthzOptions {
  /** How long work may go on after its belief has ended. Default 20 s, as in Go controllers. */
  readonly tolerance?: Duration;
  /** Only terms of these elections count. Default: all of this process. */
  readonly elections?: readonly string[];
  /** Time source, for tests. */
  readonly clock?: Clock;
}

/** The health of this process's terms, for a probe. */
export interface LeaderHealthz {
  /** Undefined: healthy. Otherwise the fault in words. */
  check(): string | undefined;
  /** Answers 200 with `ok`, or 503 with the fault. For `node:http` and Express. */
  readonly handler: (request: unknown, response: HealthzResponse) => void;
  /** Stops listening. */
  close(): void;
}

/** The part of `ServerResponse` of `node:http` that is needed. */
export interface HealthzResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
}

type Overrun = DiagnosticSource & DiagnosticEvents['incumbent:overrun'];
type Ended = DiagnosticSource & DiagnosticEvents['incumbent:ended'];

/**
 * For a liveness probe. Unhealthy only in one case: work of this process goes on, and the belief of
 * its term ended longer ago than `tolerance`. Only a restart stops such work. A follower is
 * healthy, and so is a leader that cannot reach the store: a restart would help neither. A process
 * that hangs does not answer at all. Call it before the first election.
 */
export function leaderHealthz(options: HealthzOptions = {}): LeaderHealthz {
  const toleranceMs = parseDuration('tolerance', options.tolerance ?? '20s');
  const { elections, clock = systemClock } = options;
  const overruns = new Map<string, { readonly sinceMs: number; readonly message: Overrun }>();
  const keyOf = ({ election, candidate, token }: Overrun | Ended) =>
    JSON.stringify([election, candidate, token.toString()]);
  const onOverrun = (message: unknown) => {
    const overrun = message as Overrun;
    if (elections !== undefined && !elections.includes(overrun.election)) return;
    overruns.set(keyOf(overrun), { sinceMs: clock.monotonicMs(), message: overrun });
  };
  const onEnded = (message: unknown) => void overruns.delete(keyOf(message as Ended));
  subscribe('incumbent:overrun', onOverrun);
  subscribe('incumbent:ended', onEnded);
  const check = () => {
    const nowMs = clock.monotonicMs();
    for (const { sinceMs, message } of overruns.values()) {
      const forMs = nowMs - sinceMs;
      if (forMs <= toleranceMs) continue;
      const { token, election, reason } = message;
      return (
        `work of term ${token} of election "${election}" has gone on for ` +
        `${Math.round(forMs / 1_000)} s after the term was over (${reason})`
      );
    }
    return undefined;
  };
  return {
    check,
    handler(_request, response) {
      const trouble = check();
      response.statusCode = trouble === undefined ? 200 : 503;
      response.setHeader('content-type', 'text/plain; charset=utf-8');
      response.setHeader('cache-control', 'no-store');
      response.end(`${trouble ?? 'ok'}\n`);
    },
    close() {
      unsubscribe('incumbent:overrun', onOverrun);
      unsubscribe('incumbent:ended', onEnded);
    },
  };
}
