import { electionHeader, readNames, readTokens, refusedHeader, tokenHeader } from '../headers.ts';
import type { Follower } from '../index.ts';
import { originOfText } from './origin.ts';
import type { Refusal } from './problem.ts';
import type { ReplayBody } from './replay-body.ts';
import type { RequestController } from './request-controller.ts';
import type {
  Dispatch,
  DispatchController,
  DispatchHandler,
  DispatchOptions,
  UndiciHeaders,
} from './undici.ts';

/** Where a request is sent. */
export interface Target {
  readonly origin: string;
  readonly token: bigint | undefined;
  /** The same for the same term at the same address. */
  readonly key: string;
}

/** Nothing came of an attempt, or it may be done twice. */
export interface Repeat {
  readonly kind: 'repeat';
  readonly target: Target;
  readonly why: string;
  readonly error?: unknown;
  /** A newer leader than is known, which the refusal named. */
  readonly hint?: Target;
}

/** `answered`: the user's handler has the answer or the error. */
export type Outcome = { readonly kind: 'answered' } | Repeat;

/** The network's own errors. Others (bad arguments, a closed dispatcher) come again each time. */
const connectionErrors = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_SOCKET',
]);

/** Refusals that another server, or the same one later, may not repeat. */
const curable: ReadonlySet<string> = new Set<Refusal>([
  'not-leading',
  'no-leader',
  'newer-token',
  'unreachable',
]);

/** A handler was at work on it. That matters to callers for which a GET is not idempotent. */
const seenByHandler: Refusal = 'term-ended';

/** How much is read of an unwanted answer, so that its connection can be used again. */
const maxUnwantedBytes = 65_536;

export interface AttemptSettings {
  readonly target: Target;
  readonly handler: DispatchHandler;
  readonly controller: RequestController;
  readonly follower: Follower;
  readonly body: ReplayBody | undefined;
  readonly isSecure: boolean;
  readonly mayRepeat: boolean;
  readonly isIdempotent: boolean;
}

/**
 * One sending of a request.
 *
 * - `open`: no answer has come.
 * - `answering`: the user's handler has the answer.
 * - `left`: another attempt follows, and anything that still comes of this one is dropped.
 */
export class Attempt implements DispatchHandler {
  readonly #settings: AttemptSettings;
  #state: 'open' | 'answering' | 'left' = 'open';
  /** undici says so before it writes. A request for which it has not said it was not sent. */
  #wasSent = false;
  #connection: DispatchController | undefined;
  #unwantedBytes = 0;
  #resolve: (outcome: Outcome) => void = () => {};
  #removers: (() => void)[] = [];

  constructor(settings: AttemptSettings) {
    this.#settings = settings;
  }

  /** Resolves as soon as it is clear whether another attempt is needed. Rejects when aborted. */
  send(dispatch: Dispatch, options: DispatchOptions): Promise<Outcome> {
    const { follower, controller } = this.#settings;
    return new Promise<Outcome>((resolve, reject) => {
      this.#resolve = resolve;
      const onAbort = () => {
        if (this.#state !== 'open') return;
        this.#leave();
        this.#connection?.abort(controller.reason ?? this.#gone());
        reject(controller.reason);
      };
      controller.signal.addEventListener('abort', onAbort, { once: true });
      this.#removers = [
        () => controller.signal.removeEventListener('abort', onAbort),
        follower.onChange(() => this.#lookForSuccessor()),
      ];
      dispatch(options, this);
    }).finally(() => this.#stopListening());
  }

  onRequestStart(connection: DispatchController): void {
    this.#connection = connection;
    if (this.#state === 'left') {
      connection.abort(this.#gone());
    } else {
      this.#wasSent = true;
      this.#settings.controller.target = connection;
    }
  }

  onRequestUpgrade(
    connection: DispatchController,
    status: number,
    headers: UndiciHeaders,
    socket: unknown,
  ): void {
    if (this.#state === 'left') {
      connection.abort(this.#gone());
    } else {
      this.#answer();
      const { handler, controller } = this.#settings;
      handler.onRequestUpgrade?.(controller, status, headers, socket);
    }
  }

  onResponseStart(
    connection: DispatchController,
    status: number,
    headers: UndiciHeaders,
    statusText?: string,
  ): void {
    if (this.#state === 'left') return;
    const { handler, controller } = this.#settings;
    // 103 and the like come before the answer.
    if (status >= 200) {
      if (this.#canRepeat() && this.#isRefusal(headers)) {
        const why = `answered ${status} (${String(headers[refusedHeader])})`;
        const hint = this.#hintIn(status, headers);
        this.#repeat({ why, ...(hint === undefined ? {} : { hint }) }, connection);
        return;
      }
      this.#answer();
    }
    handler.onResponseStart?.(controller, status, headers, statusText);
  }

  onResponseData(connection: DispatchController, chunk: Uint8Array): void {
    const { handler, controller } = this.#settings;
    if (this.#state !== 'left') {
      handler.onResponseData?.(controller, chunk);
    } else {
      this.#unwantedBytes += chunk.length;
      if (this.#unwantedBytes > maxUnwantedBytes) connection.abort(this.#gone());
    }
  }

  onResponseEnd(_connection: DispatchController, trailers: UndiciHeaders): void {
    if (this.#state === 'left') return;
    const { handler, controller, body } = this.#settings;
    void body?.close();
    handler.onResponseEnd?.(controller, trailers);
  }

  onResponseError(_connection: DispatchController, error: Error): void {
    if (this.#state === 'left') return;
    const { handler, controller, body, isIdempotent } = this.#settings;
    const isOpen = this.#state === 'open' && !controller.aborted;
    const isHarmless = !this.#wasSent || isIdempotent;
    if (isOpen && isHarmless && isConnectionError(error) && this.#canRepeat()) {
      this.#repeat({ why: `failed (${error.message})`, error });
    } else {
      this.#answer();
      void body?.close();
      handler.onResponseError?.(controller, error);
    }
  }

  /** A leader that hangs never answers. So its successor is asked, where that does no harm. */
  #lookForSuccessor(): void {
    const { follower, target, isIdempotent } = this.#settings;
    const token = follower.leader?.token;
    const isReplaced = token !== undefined && target.token !== undefined && token > target.token;
    if (this.#state !== 'open' || !isReplaced || !this.#canRepeat()) return;
    if (!this.#wasSent || isIdempotent) {
      this.#repeat({ why: 'was replaced before it answered' });
      this.#connection?.abort(this.#gone());
    }
  }

  #canRepeat(): boolean {
    const { mayRepeat, body, controller } = this.#settings;
    return mayRepeat && !controller.aborted && body?.canReplay !== false;
  }

  #isRefusal(headers: UndiciHeaders): boolean {
    const { follower, isIdempotent } = this.#settings;
    const why = String(headers[refusedHeader]);
    if (!curable.has(why) && !(isIdempotent && why === seenByHandler)) return false;
    return readNames(headers[electionHeader])?.includes(follower.election.name) === true;
  }

  /** A hint is believed only for a newer term than is known, and never from https to http. */
  #hintIn(status: number, headers: UndiciHeaders): Target | undefined {
    const { follower, target, isSecure } = this.#settings;
    const { location } = headers;
    if (status !== 307 || typeof location !== 'string') return undefined;
    const name = follower.election.name;
    const token = readTokens(headers[electionHeader], headers[tokenHeader])?.get(name);
    if (token === undefined || token <= (follower.token ?? -1n)) return undefined;
    if (target.token !== undefined && token <= target.token) return undefined;
    const url = URL.canParse(location) ? new URL(location) : undefined;
    const origin = url && originOfText(url.origin, isSecure || target.origin.startsWith('https:'));
    return origin === undefined ? undefined : { origin, token, key: `${token} ${origin}` };
  }

  #answer(): void {
    this.#state = 'answering';
    this.#stopListening();
    this.#resolve({ kind: 'answered' });
  }

  #repeat(why: Omit<Repeat, 'kind' | 'target'>, connection?: DispatchController): void {
    this.#leave();
    // A connection on which a body is still being sent cannot be used for anything else.
    if (this.#settings.body?.isComplete === false) connection?.abort(this.#gone());
    this.#resolve({ kind: 'repeat', target: this.#settings.target, ...why });
  }

  #leave(): void {
    this.#state = 'left';
    this.#settings.controller.target = undefined;
    this.#stopListening();
  }

  #stopListening(): void {
    for (const remove of this.#removers.splice(0)) remove();
  }

  #gone(): Error {
    return new Error('another attempt was made for this request');
  }
}

function isConnectionError(error: Error): boolean {
  return connectionErrors.has(String((error as { code?: unknown }).code));
}
