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

export interface ToLeaderOptions {
  /**
   * How long one request may wait for a leader, all its attempts together. Default two leases, which
   * is longer than the seat stays empty after a crash. 0: only if somebody leads now.
   */
  readonly waitTimeout?: Duration;
  /** How often one request may be sent, 1 to 100. Default 10. */
  readonly attempts?: number;
  /**
   * Bodies that come in pieces (streams, and whatever `fetch` sends) are kept up to this many bytes, so that
   * they can be sent again. Default 65 536; larger ones are sent once.
   */
  readonly replayLimit?: number;
  /** Picks from a leader's addresses. Default: its first `http(s)` URL, else its first `host:port`. */
  readonly addressOf?: AddressOf;
}

/** An interceptor of undici that has a leader to follow. */
export interface LeaderInterceptor {
  (dispatch: Dispatch): Dispatch;
  /** Requests that wait and later ones are rejected with a ClosedError. Idempotent. */
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
 * Sends every request to whoever leads: `new Agent().compose(toLeader(election))`. Of the URL that
 * was asked for only the path, the query and whether it is `https:` count; then the leader's address
 * must not be an `http:` one.
 *
 * A request waits for a leader (`waitTimeout`), carries the election and the leader's token, and is
 * sent again, to the next leader if there is one, after
 * - an answer that says `incumbent-refused` (`leaderOnly`: nothing came of it), any method;
 * - a connection that could not be made, any method;
 * - a connection that broke before the answer began, and a leader that was replaced before it
 *   answered: only GET, HEAD, OPTIONS, TRACE, PUT and DELETE, or as undici's `idempotent` says.
 *
 * Never when its body is gone (`replayLimit`), and never once the answer has begun. Requests are
 * rejected with `NoLeaderError` (retryable: nothing came of them, or they may be done twice), with
 * undici's error where the outcome may be unknown, and with their own signal's reason.
 *
 * Observes the election until it or the interceptor is closed; keeps no process alive.
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
