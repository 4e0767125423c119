import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, request as requestHttp } from 'node:http';
import { request as requestHttps, Agent as SecureAgent } from 'node:https';
import { isIP } from 'node:net';
import type { Problem } from './problem.ts';
import { sendProblem } from './problem.ts';
import { ProxyExchange } from './proxy-exchange.ts';
import { hasBody, headersForLeader, obstacleIn } from './proxy-headers.ts';

export interface ProxySettings {
  readonly connectMs: number;
  readonly idleMs: number;
  readonly trustsForwarded: boolean;
  readonly tls: Readonly<Record<string, unknown>>;
}

export interface ProxyTarget {
  readonly origin: string;
  /** Path and query. */
  readonly target: string;
  /** The token of the leader's term, if it has told one. */
  readonly token: bigint | undefined;
  /** The newest token known. The leader refuses when its term is older. */
  readonly carried: bigint | undefined;
  /**
   * Reports leaders of newer terms than `token`.
   * @returns a function that takes the listener away again
   */
  readonly onReplaced: (
    token: bigint | undefined,
    listener: (origin: string, token: bigint) => void,
  ) => () => void;
}

const repeatable = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Passes requests on to the leader, and its answers back, piece by piece. */
export class LeaderProxy {
  readonly #election: string;
  readonly #settings: ProxySettings;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #secureAgent = new SecureAgent({ keepAlive: true });

  readonly #onStale: () => void;
  readonly #open = new Set<ProxyExchange>();

  /** @param onStale called when the server that was asked does not lead, or cannot be reached */
  constructor(election: string, settings: ProxySettings, onStale: () => void) {
    this.#election = election;
    this.#settings = settings;
    this.#onStale = onStale;
  }

  close(): void {
    for (const exchange of [...this.#open]) exchange.close();
    this.#agent.destroy();
    this.#secureAgent.destroy();
  }

  forward(request: IncomingMessage, response: ServerResponse, to: ProxyTarget): void {
    const obstacle = obstacleIn(request);
    if (obstacle === undefined) this.#send(request, response, to, false);
    else this.#fail(response, 'not-passed-on', ...obstacle);
  }

  #send(
    request: IncomingMessage,
    response: ServerResponse,
    to: ProxyTarget,
    isSecondTry: boolean,
  ): void {
    const url = new URL(to.origin);
    const isSecure = url.protocol === 'https:';
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const { trustsForwarded, tls, connectMs, idleMs } = this.#settings;
    const options = {
      host,
      port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
      method: request.method,
      path: to.target,
      headers: headersForLeader(request, {
        election: this.#election,
        leaderHost: url.host,
        trustsForwarded,
        carried: to.carried,
      }),
      setHost: false,
    };
    // Otherwise Node would demand a certificate for the client's `Host`, whatever that is.
    const servername = isIP(host) === 0 ? host : '';
    const upstream = isSecure
      ? requestHttps({
          servername,
          ...tls,
          ...options,
          agent: isSecondTry ? false : this.#secureAgent,
        })
      : requestHttp({ ...options, agent: isSecondTry ? false : this.#agent });
    const mayRepeat = !hasBody(request) && repeatable.has(request.method ?? '');
    const stopListening = to.onReplaced(to.token, (origin, token) => {
      // A leader that stands still never answers.
      if (!mayRepeat || !exchange.leave()) return;
      this.#send(request, response, { ...to, origin, token, carried: token }, isSecondTry);
    });
    const exchange = new ProxyExchange({
      request,
      response,
      upstream,
      isSecure,
      connectMs,
      idleMs,
      onStale: this.#onStale,
      onEnd: () => {
        stopListening();
        this.#open.delete(exchange);
      },
      fail: (type, status, detail) => this.#fail(response, type, status, detail),
      again: isSecondTry || !mayRepeat ? undefined : () => this.#send(request, response, to, true),
    });
    this.#open.add(exchange);
    exchange.start();
  }

  #fail(response: ServerResponse, type: Problem['type'], status: number, detail: string): void {
    // An answer has begun, so all that can be told is its end.
    if (response.headersSent) {
      response.destroy();
      return;
    }
    sendProblem(response, {
      status,
      type,
      title: 'The leader did not answer',
      detail,
      election: this.#election,
      refused: type === 'unreachable' || type === 'not-passed-on',
      ...(status === 503 ? { headers: { 'retry-after': '1' } } : {}),
      // The rest of the body may never come.
      ...(status === 408 ? { headers: { connection: 'close' } } : {}),
    });
  }
}
