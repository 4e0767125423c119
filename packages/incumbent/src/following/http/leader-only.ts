import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import type { Duration } from '../../base/duration.ts';
import { parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { Election } from '../../core/election.ts';
import { checkSignal } from '../../core/options.ts';
import type { Term } from '../../core/term.ts';
import type { AddressOf } from '../index.ts';
import { checkAddressOf, checkElection } from '../index.ts';
import { LeaderGate } from './leader-gate.ts';
import type { FastifyHook, Middleware } from './node-http.ts';
import { asFastifyHook, asMiddleware } from './node-http.ts';

/** The options of `leaderOnly`. */
export interface LeaderOnlyOptions {
  /** The election whose leader serves. The handle stays the caller's. */
  readonly election: Election;
  /** The term that this process holds, as your work was given it. Undefined when it holds none. */
  readonly term: () => Term | undefined;
  /**
   * How a process that does not lead treats a request.
   *
   * - `redirect` (default): sends a 307 to the leader.
   * - `proxy`: passes the request on, and the answer back.
   * - `refuse`: answers with `refuseWith`.
   */
  readonly followers?: 'redirect' | 'proxy' | 'refuse';
  /** The status of refusals: 503 (default, load balancers try the next server) or 421. */
  readonly refuseWith?: 421 | 503;
  /** How long a request is held while no leader is known, or it is not ready. Default 1 s. */
  readonly waitTimeout?: Duration;
  /** The value of `Retry-After` while no candidate leads, rounded up to seconds. Default 1 s. */
  readonly retryAfter?: Duration;
  /**
   * How much belief must be left when a request is taken on (`term.remaining()`). Default 0. More
   * makes it rarer that a term ends before its answer.
   */
  readonly minRemaining?: Duration;
  /**
   * The fate of an answer whose term is over when it begins.
   *
   * `replace` (default): no success is claimed. A GET, HEAD, OPTIONS or TRACE gets 503 (ask the
   * next leader). For any other method, an answer with a status below 400 becomes a 500 with the
   * problem `outcome-unknown`. The request may have been applied, so do not just repeat it. An
   * answer that is still being sent when the term is over is cut off.
   *
   * `keep`: answers go out unchanged, for servers whose every effect is checked by its token.
   */
  readonly lateAnswers?: 'replace' | 'keep';
  /**
   * Picks from a leader's addresses. Default: its first `http(s)` URL, or else
   * its first `host:port`.
   */
  readonly addressOf?: AddressOf;
  /** The scheme of a leader's `host:port`. Default: as the request came in. */
  readonly scheme?: 'http' | 'https';
  readonly proxy?: ProxyOptions;
}

/** For `followers: 'proxy'`. */
export interface ProxyOptions {
  /** How long connecting to the leader may take. Default 5 s. */
  readonly connectTimeout?: Duration;
  /**
   * How long nothing may move, in either direction, before the request is given up. Default 60 s.
   */
  readonly idleTimeout?: Duration;
  /**
   * True: this server is behind a proxy that can be trusted. Then `X-Forwarded-*` of the request is
   * passed on and added to, and `Forwarded` and `X-Real-IP` are passed on unchanged. False
   * (default): none of these headers is passed on.
   */
  readonly trustForwarded?: boolean;
  /** Options of `node:tls` for leaders that are reached with https, such as `ca`. */
  readonly tls?: Readonly<Record<string, unknown>>;
}

/** The options of `drained`. */
export interface DrainOptions {
  /** How long to wait for answers that are being sent. Default 5 s. */
  readonly timeout?: Duration;
  /** Stops the waiting: `drained` rejects with its reason. */
  readonly signal?: AbortSignal;
}

/** A middleware: `app.use(only)`, or `only(request, response, () => …)` with plain `node:http`. */
export interface LeaderOnly extends Middleware {
  /** For Fastify: `fastify.addHook('onRequest', only.fastify)`. */
  readonly fastify: FastifyHook;
  /**
   * Resolves with true as soon as no request is being served. Await it in the work, after `term()`
   * has begun to return undefined. So requests are finished before the seat is given back.
   *
   * Streams of events (`text/event-stream`) that the application has not ended are cut off at once,
   * because they never end by themselves. After `timeout` (default 5 s) all other answers that are
   * still being sent are cut off, too. Then it resolves with false. With `lateAnswers: 'keep'`
   * nothing is cut off.
   * @throws InvalidOptionError
   * @throws `signal.reason` when aborted
   */
  drained(options?: DrainOptions): Promise<boolean>;
  /**
   * Followers know no leader any more, and requests that they are passing on are cut off. A second
   * call does nothing.
   */
  close(): void;
}

const optionNames: Record<keyof LeaderOnlyOptions, true> = {
  election: true,
  term: true,
  followers: true,
  refuseWith: true,
  waitTimeout: true,
  retryAfter: true,
  minRemaining: true,
  lateAnswers: true,
  addressOf: true,
  scheme: true,
  proxy: true,
};

const proxyNames: Record<keyof ProxyOptions, true> = {
  connectTimeout: true,
  idleTimeout: true,
  trustForwarded: true,
  tls: true,
};

/**
 * Lets only the leader serve requests. Put it before everything that reads bodies or answers.
 *
 * A request is passed on while `term()` leads and is ready, and the request carries no newer token
 * than that term's. Otherwise nothing comes of it here. The answer says `incumbent-refused`, whatever its
 * status, and names the newest token known.
 *
 * Followers that proxy refuse an `Upgrade` (501). On a leader Node gives it to
 * `server.on('upgrade')`, past every middleware. So check `term()` there.
 *
 * Not promised: that a handler has finished when the term is over. Check `term.assertLeading()`
 * after slow steps, and the token where effects land.
 *
 * Observes the election until the election or this is closed. It does not keep the process alive.
 * @throws InvalidOptionError
 */
export function leaderOnly(options: LeaderOnlyOptions): LeaderOnly {
  checkNames('leaderOnly', options, optionNames);
  const { election, term, proxy = {} } = options;
  checkElection(election);
  if (typeof term !== 'function') {
    throw new InvalidOptionError(`term must be a function, not ${describeValue(term)}`);
  }
  checkAddressOf(options.addressOf);
  checkNames('proxy', proxy, proxyNames);
  const gate = new LeaderGate({
    election,
    term,
    followers: oneOf('followers', options.followers ?? 'redirect', ['redirect', 'proxy', 'refuse']),
    refuseWith: oneOf('refuseWith', options.refuseWith ?? 503, [421, 503]),
    waitMs: parseDuration('waitTimeout', options.waitTimeout ?? 1000),
    retryAfterS: Math.max(
      1,
      Math.ceil(parseDuration('retryAfter', options.retryAfter ?? 1000) / 1000),
    ),
    minRemainingMs: parseDuration('minRemaining', options.minRemaining ?? 0),
    lateAnswers: oneOf('lateAnswers', options.lateAnswers ?? 'replace', ['replace', 'keep']),
    addressOf: options.addressOf,
    scheme:
      options.scheme === undefined ? undefined : oneOf('scheme', options.scheme, ['http', 'https']),
    proxy: {
      connectMs: parseDuration('connectTimeout', proxy.connectTimeout ?? 5000),
      idleMs: parseDuration('idleTimeout', proxy.idleTimeout ?? 60_000),
      trustsForwarded: oneOf('trustForwarded', proxy.trustForwarded ?? false, [true, false]),
      tls: proxy.tls ?? {},
    },
  });
  const middleware = asMiddleware('leaderOnly', (request, response, next, take) => {
    gate.handle(request, response, next, take);
  });
  return Object.assign(middleware, {
    fastify: asFastifyHook((request, response, next, take) => {
      gate.handle(request, response, next, take);
    }),
    drained: async (wanted: DrainOptions = {}) => {
      checkNames('drained', wanted, { timeout: true, signal: true });
      checkSignal(wanted.signal);
      return gate.drained(parseDuration('timeout', wanted.timeout ?? 5000), wanted.signal);
    },
    close: () => gate.close(),
  });
}

function oneOf<T>(name: string, value: T, known: readonly T[]): T {
  if (known.includes(value)) return value;
  const list = known.map((entry) => JSON.stringify(entry)).join(' or ');
  throw new InvalidOptionError(`${name} is ${list}, not ${describeValue(value)}`);
}
