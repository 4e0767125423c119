import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import { systemClock } from '../../base/clock.ts';
import { refusedHeader } from '../headers.ts';
import type { Problem } from './problem.ts';
import { endToEnd, hasBody } from './proxy-headers.ts';

export interface ExchangeSettings {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly upstream: ClientRequest;
  readonly isSecure: boolean;
  /** How long connecting may take. */
  readonly connectMs: number;
  /** How long nothing may move after that. */
  readonly idleMs: number;
  readonly fail: (type: Problem['type'], status: number, detail: string) => void;
  /** The server that was asked does not lead, or cannot be reached. */
  readonly onStale: () => void;
  readonly onEnd: () => void;
  /** Sends the request on a connection of its own. */
  readonly again: (() => void) | undefined;
}

/**
 * One request that is passed on. It ends with its answer, or when either side or the time is gone.
 */
export class ProxyExchange {
  readonly #with: ExchangeSettings;
  /** False: nothing has reached the leader yet. */
  #isConnected = false;
  #isOver = false;
  #received: IncomingMessage | undefined;
  #movedMs = systemClock.monotonicMs();
  #timer: { cancel(): void } = { cancel: () => {} };
  readonly #onClose = (): void => this.#end();

  constructor(settings: ExchangeSettings) {
    this.#with = settings;
  }

  start(): void {
    const { request, response, upstream, isSecure, connectMs, idleMs } = this.#with;
    this.#watch(connectMs);
    // Answered or not: the application may have answered too, for example after a timeout
    // of its own.
    response.once('close', this.#onClose);
    upstream.on('socket', (socket) => {
      const connected = () => {
        if (this.#isOver) return;
        this.#isConnected = true;
        this.#moved();
        this.#timer.cancel();
        this.#watch(idleMs);
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

  /** Stops passing on. */
  close(): void {
    this.#giveUp('bad-gateway', 502, 'This server has stopped passing requests on.');
  }

  /** @returns false when it is over or answered, and so cannot be sent to another server */
  leave(): boolean {
    if (this.#isOver || this.#received !== undefined) return false;
    this.#end();
    return true;
  }

  #answer(answer: IncomingMessage): void {
    const { response } = this.#with;
    if (this.#isOver) return;
    if (response.headersSent || response.destroyed) {
      this.#end();
      return;
    }
    this.#received = answer;
    if (answer.headers[refusedHeader] !== undefined) this.#with.onStale();
    this.#moved();
    try {
      response.statusCode = answer.statusCode ?? 502;
      if (answer.statusMessage !== undefined) response.statusMessage = answer.statusMessage;
      for (const [name, value] of Object.entries(endToEnd(answer))) response.setHeader(name, value);
      // Its body may take long to begin.
      response.flushHeaders();
    } catch (error) {
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      this.#giveUp(
        'bad-gateway',
        502,
        `The leader's answer cannot be passed on (${codeOf(error)}).`,
      );
      return;
    }
    answer.on('data', this.#moved);
    response.on('drain', this.#moved);
    // Half of an answer must not look like a whole one.
    finished(answer, (error) => {
      if (error) response.destroy();
    });
    finished(response, () => this.#end());
    answer.pipe(response);
  }

  #failed(error: Error): void {
    const { upstream, response, again } = this.#with;
    if (this.#isOver) return;
    // The leader had closed a kept connection. Nothing was wrong with the request.
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

  /** Looks whether anything has moved. That is cheaper than a timer for each piece. */
  #watch(waitMs: number): void {
    this.#timer = systemClock.setTimer(
      () => {
        const limitMs = this.#isConnected ? this.#with.idleMs : this.#with.connectMs;
        const leftMs = this.#movedMs + limitMs - systemClock.monotonicMs();
        if (leftMs > 0) this.#watch(leftMs);
        else this.#suspect(limitMs);
      },
      waitMs,
      true,
    );
  }

  /** After a stall of this process, the data that came meanwhile still has to be read. */
  #suspect(limitMs: number): void {
    setImmediate(() => {
      if (this.#isOver) return;
      const leftMs = this.#movedMs + limitMs - systemClock.monotonicMs();
      if (leftMs > 0) this.#watch(leftMs);
      else this.#timedOut();
    });
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
    if (type === 'unreachable') this.#with.onStale();
    this.#with.fail(type, status, detail);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#with.onEnd();
    const { request, response, upstream } = this.#with;
    this.#timer.cancel();
    response.off('close', this.#onClose);
    request.off('data', this.#moved);
    request.unpipe(upstream);
    // The rest of the body has no reader. The connection cannot be used before it has passed.
    request.resume();
    // A connection is kept when both messages have passed over it whole. Otherwise the rest would
    // never be sent.
    if (this.#received?.complete !== true || !upstream.writableFinished) upstream.destroy();
  }

  readonly #moved = (): void => {
    this.#movedMs = systemClock.monotonicMs();
  };
}

function codeOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return String(code ?? message);
}
