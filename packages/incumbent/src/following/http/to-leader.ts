import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import type { Duration } from '../../base/duration.ts';
import { parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { Election } from '../../core/election.ts';
import type { AddressOf } from '../index.ts';
import { checkAddressOf, checkElection, Follower } from '../index.ts';
import { LeaderRequest } from './leader-request.ts';
import type { Dispatch } from './undici.ts';
import { checkHandler } from './undici.ts';

/** The options of `toLeader`. */
export interface ToLeaderOptions {
  /**
   * How long one request may wait for a leader, all its attempts together. Default two leases,
   * which is longer than the seat stays empty after a crash. 0: only if a candidate leads now.
   */
  readonly waitTimeout?: Duration;
  /** How often one request may be sent, 1 to 100. Default 10. */
  readonly attempts?: number;
  /**
   * How many bytes of a body are kept so that it can be sent again. It counts for bodies that come
   * in pieces: streams, and all bodies of `fetch`. Default 65 536. Larger bodies are sent once.
   */
  readonly replayLimit?: number;
  /**
   * Picks from a leader's addresses. Default: its first `http(s)` URL, or else
   * its first `host:port`.
   */
  readonly addressOf?: AddressOf;
}

/** An interceptor of undici that follows a leader. */
export interface LeaderInterceptor {
  (dispatch: Dispatch): Dispatch;
  /** Waiting and later requests are rejected with a ClosedError. A second call does nothing. */
  close(): void;
}

const optionNames: Record<keyof ToLeaderOptions, true> = {
  waitTimeout: true,
  attempts: true,
  replayLimit: true,
  addressOf: true,
};

const defaultAttempts = 10;
const maxAttempts = 100;
const defaultReplayBytes = 65_536;

/**
 * Sends every request to the leader: `new Agent().compose(toLeader(election))`. Only the path and
 * the query of the given URL count, and whether it is `https:`. With `https:` the leader's address
 * must not be an `http:` one.
 *
 * A request waits for a leader (`waitTimeout`), and carries the election and the leader's token. It
 * is sent again, to the next leader if there is one, after
 * - an answer that says `incumbent-refused` (`leaderOnly`: nothing came of it), with any method.
 * - a connection that could not be made, with any method.
 * - a connection that broke before the answer began, or a leader that was replaced before it
 *   answered. That goes only for GET, HEAD, OPTIONS, TRACE, PUT and DELETE, or as undici's
 *   `idempotent` says.
 *
 * It is never sent again when its body is gone (`replayLimit`), nor once the answer has begun.
 * Requests are rejected with
 * - `NoLeaderError` (retryable: nothing came of them, or they may be done twice).
 * - undici's error where the outcome may be unknown.
 * - their own signal's reason.
 *
 * Observes the election until the election or the interceptor is closed. It does not keep
 * the process alive.
 * @throws InvalidOptionError
 */
export function toLeader(election: Election, options: ToLeaderOptions = {}): LeaderInterceptor {
  checkNames('toLeader', options, optionNames);
  checkAddressOf(options.addressOf);
  const attempts = checkWhole('attempts', options.attempts ?? defaultAttempts, 1, maxAttempts);
  const replayBytes = checkWhole(
    'replayLimit',
    options.replayLimit ?? defaultReplayBytes,
    0,
    Number.MAX_SAFE_INTEGER,
  );
  const { waitTimeout } = options;
  checkElection(election);
  const settings = {
    waitMs: parseDuration('waitTimeout', waitTimeout ?? 2 * election.timing.leaseMs),
    attempts,
    replayBytes,
    addressOf: options.addressOf,
  };
  const follower = new Follower(election);
  const interceptor = (dispatch: Dispatch): Dispatch =>
    // undici wants a function of two parameters.
    function toLeaderDispatch(request, handler) {
      checkHandler(handler);
      new LeaderRequest(dispatch, request, handler, follower, settings).start();
      return true;
    };
  return Object.assign(interceptor, { close: () => follower.close() });
}

function checkWhole(name: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) {
    return Number(value);
  }
  throw new InvalidOptionError(
    `${name} must be a whole number from ${least} to ${most}, not ${describeValue(value)}`,
  );
}
