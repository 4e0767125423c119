import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { Agent, request as requestHttp } from 'node:http';
import { request as requestHttps, Agent as SecureAgent } from 'node:https';
import { finished } from 'node:stream';
import { systemClock } from '../clock.ts';
import {
  electionHeader,
  proxiedHeader,
  readNames,
  readTokens,
  tokenHeader,
  writeName,
  writeTokens,
} from './headers.ts';
import type { Problem } from './problem.ts';
import { sendProblem } from './problem.ts';

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
  /** The newest token known; the leader refuses when its term is older. */
  readonly carried: bigint | undefined;
}

/** Headers that are about one connection (RFC 9110, 7.6.1), besides those that `Connection` names. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const forwardedHeaders = new Set([
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
]);

const repeatable = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Passes requests on to the leader, and its answers back, piece by piece. */
export class LeaderProxy {
  readonly #election: string;
  readonly #settings: ProxySettings;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #secureAgent: SecureAgent;

  constructor(election: string, settings: ProxySettings) {
    this.#election = election;
    this.#settings = settings;
    this.#secureAgent = new SecureAgent({ ...settings.tls, keepAlive: true });
  }

  close(): void {
    this.#agent.destroy();
    this.#secureAgent.destroy();
  }

  forward(request: IncomingMessage, response: ServerResponse, to: ProxyTarget): void {
    // A body that somebody has read is gone; the leader would wait for it.
    if (request.readableDidRead && hasBody(request)) {
      const detail = 'Put leaderOnly before whatever reads the body of a request.';
      this.#fail(response, 'unreachable', 500, detail);
    } else {
      this.#send(request, response, to, false);
    }
  }

  #send(
    request: IncomingMessage,
    response: ServerResponse,
    to: ProxyTarget,
    isSecondTry: boolean,
  ): void {
    const url = new URL(to.origin);
    const isSecure = url.protocol === 'https:';
    const options = {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
      method: request.method,
      path: to.target,
      headers: this.#headersOf(request, to.carried),
      setHost: false,
    };
    const upstream = isSecure
      ? requestHttps({
          ...options,
          ...this.#settings.tls,
          agent: isSecondTry ? false : this.#secureAgent,
        })
      : requestHttp({ ...options, agent: isSecondTry ? false : this.#agent });
    new Exchange({
      request,
      response,
      upstream,
      isSecure,
      settings: this.#settings,
      fail: (type, status, detail) => this.#fail(response, type, status, detail),
      again:
        isSecondTry || hasBody(request) || !repeatable.has(request.method ?? '')
          ? undefined
          : () => this.#send(request, response, to, true),
    }).start();
  }

  #headersOf(
    request: IncomingMessage,
    carried: bigint | undefined,
  ): Record<string, string | string[]> {
    const headers: Record<string, string | string[]> = endToEnd(request);
    const { trustsForwarded } = this.#settings;
    const before = (name: string) => (trustsForwarded ? request.headers[name] : undefined);
    const from = request.socket.remoteAddress ?? 'unknown';
    const isSecure = (request.socket as { encrypted?: boolean }).encrypted === true;
    for (const name of forwardedHeaders) if (!trustsForwarded) delete headers[name];
    const via = before('x-forwarded-for');
    headers['x-forwarded-for'] = via === undefined ? from : `${String(via)}, ${from}`;
    headers['x-forwarded-host'] = before('x-forwarded-host') ?? request.headers.host ?? '';
    headers['x-forwarded-proto'] = before('x-forwarded-proto') ?? (isSecure ? 'https' : 'http');
    // Node has answered this one already.
    delete headers['expect'];
    if (request.headers['transfer-encoding'] !== undefined) {
      headers['transfer-encoding'] = 'chunked';
      delete headers['content-length'];
    } else {
      headers['content-length'] ??= '0';
      if (!hasBody(request) && repeatable.has(request.method ?? ''))
        delete headers['content-length'];
    }
    const passed = readNames(request.headers[proxiedHeader]) ?? [];
    headers[proxiedHeader] = [...passed, this.#election].map(writeName).join(', ');
    if (carried !== undefined) {
      const tokens = new Map(readTokens(headers[electionHeader], headers[tokenHeader]));
      tokens.set(this.#election, carried);
      const written = writeTokens(tokens);
      headers[electionHeader] = written.elections;
      headers[tokenHeader] = written.tokens;
    }
    return headers;
  }

  #fail(response: ServerResponse, type: Problem['type'], status: number, detail: string): void {
    // Nothing can be said any more but that it is over.
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
      refused: type === 'unreachable',
      ...(status === 503 ? { headers: { 'retry-after': '1' } } : {}),
      // What is left of the body may never come.
      ...(status === 408 ? { headers: { connection: 'close' } } : {}),
    });
  }
}

interface ExchangeSettings {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly upstream: ClientRequest;
  readonly isSecure: boolean;
  readonly settings: ProxySettings;
  readonly fail: (type: Problem['type'], status: number, detail: string) => void;
  /** Sends the request on a connection of its own. */
  readonly again: (() => void) | undefined;
}

/** One request that is passed on. Ends with its answer, or when either side or the time is gone. */
class Exchange {
  readonly #with: ExchangeSettings;
  /** Before that nothing has reached the leader. */
  #isConnected = false;
  #isOver = false;
  #received: IncomingMessage | undefined;
  #movedMs = systemClock.monotonicMs();
  #timer: { cancel(): void } = { cancel: () => {} };
  #onClose: () => void = () => {};

  constructor(settings: ExchangeSettings) {
    this.#with = settings;
  }

  start(): void {
    const { request, response, upstream, isSecure, settings } = this.#with;
    this.#watch(settings.connectMs);
    this.#onClose = () => {
      if (!response.writableFinished) this.#end();
    };
    response.once('close', this.#onClose);
    upstream.on('socket', (socket) => {
      const connected = () => {
        if (this.#isOver) return;
        this.#isConnected = true;
        this.#moved();
        this.#timer.cancel();
        this.#watch(settings.idleMs);
      };
      if (!socket.connecting) connected();
      else socket.once(isSecure ? 'secureConnect' : 'connect', connected);
    });
    upstream.on('error', (error) => this.#failed(error));
    upstream.on('response', (answer) => this.#answer(answer));
    upstream.on('upgrade', (_answer, socket) => {
      socket.destroy();
      this.#giveUp('bad-gateway', 502, 'The leader changed the protocol without being asked.');
    });
    request.on('data', this.#moved);
    upstream.on('drain', this.#moved);
    // The leader may want to answer before the body comes.
    if (hasBody(request)) upstream.flushHeaders();
    request.pipe(upstream);
  }

  #answer(answer: IncomingMessage): void {
    const { response } = this.#with;
    if (this.#isOver) return;
    this.#received = answer;
    this.#moved();
    response.statusCode = answer.statusCode ?? 502;
    if (answer.statusMessage !== undefined) response.statusMessage = answer.statusMessage;
    for (const [name, value] of Object.entries(endToEnd(answer))) response.setHeader(name, value);
    answer.on('data', this.#moved);
    response.on('drain', this.#moved);
    // A half of an answer must not look like a whole one.
    finished(answer, (error) => {
      if (error) response.destroy();
    });
    finished(response, () => this.#end());
    // Its body may take long to begin.
    response.flushHeaders();
    answer.pipe(response);
  }

  #failed(error: Error): void {
    const { upstream, response, again } = this.#with;
    if (this.#isOver) return;
    // The leader had closed a connection that was kept: nothing was wrong with the request.
    if (upstream.reusedSocket && !response.headersSent && again !== undefined) {
      this.#end();
      again();
    } else if (this.#isConnected) {
      this.#giveUp(
        'bad-gateway',
        502,
        'The connection to the leader broke: it may have been applied.',
      );
    } else {
      this.#giveUp('unreachable', 503, `The leader cannot be reached (${codeOf(error)}).`);
    }
  }

  /** Looks whether anything has moved; that is cheaper than a timer for each piece. */
  #watch(waitMs: number): void {
    this.#timer = systemClock.setTimer(
      () => {
        const limitMs = this.#isConnected
          ? this.#with.settings.idleMs
          : this.#with.settings.connectMs;
        const leftMs = this.#movedMs + limitMs - systemClock.monotonicMs();
        if (leftMs > 0) this.#watch(leftMs);
        else this.#timedOut();
      },
      waitMs,
      true,
    );
  }

  #timedOut(): void {
    const { request } = this.#with;
    if (!this.#isConnected) {
      this.#giveUp('unreachable', 503, 'The leader cannot be reached in time.');
    } else if (!request.complete && !request.isPaused()) {
      this.#giveUp('request-timeout', 408, 'The body of the request did not arrive in time.');
    } else {
      this.#giveUp('gateway-timeout', 504, 'The leader did not answer in time: it may be applied.');
    }
  }

  #giveUp(type: Problem['type'], status: number, detail: string): void {
    if (this.#isOver) return;
    this.#end();
    this.#with.fail(type, status, detail);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { request, response, upstream } = this.#with;
    this.#timer.cancel();
    response.off('close', this.#onClose);
    request.off('data', this.#moved);
    request.unpipe(upstream);
    // What is left of the body is nobody's: the connection cannot be used before it has passed.
    request.resume();
    // An answer that is there ends by itself, and its connection is kept.
    if (this.#received?.complete !== true) upstream.destroy();
  }

  readonly #moved = (): void => {
    this.#movedMs = systemClock.monotonicMs();
  };
}

/** The headers that are about the message. Values of headers that came repeatedly stay apart. */
function endToEnd(message: IncomingMessage): Record<string, string | string[]> {
  const named = new Set(
    (message.headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()),
  );
  const kept: Record<string, string | string[]> = {};
  for (const [name, values] of Object.entries(message.headersDistinct)) {
    if (values === undefined || name.startsWith(':')) continue;
    if (hopByHop.has(name) || named.has(name)) continue;
    kept[name] = values.length === 1 ? (values[0] as string) : values;
  }
  return kept;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function codeOf(error: Error): string {
  return String((error as { code?: unknown }).code ?? error.message);
}
