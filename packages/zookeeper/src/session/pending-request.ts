import type { Instant, Timer } from '../clock.ts';
import type { ErrorContext } from '../errors.ts';
import { onAbort } from '../on-abort.ts';
import type { RequestKind } from '../protocol/requests.ts';

/** What becomes of a reply. Called at once when it is read, before the next one is looked at. */
export interface ReplyHandlers<Response, Result> {
  /** @throws what the call is to reject with */
  complete(response: Response, request: AnswerOf): Result;
  /** Given: a NoNode error is an answer like any other. */
  absent?(request: AnswerOf): Result;
  /** Given: a NoWatcher error is an answer like any other. */
  noWatcher?(request: AnswerOf): Result;
  /**
   * Called once when the call ends in any other way than by one of the above.
   * @param mayBeDone it was sent, and no answer says that the server refused it
   */
  failed?(mayBeDone: boolean): void;
}

/** What is asked for, and what becomes of the reply. Made once where it can be: calls are many. */
export interface Operation<Request, Response, Result> extends ReplyHandlers<Response, Result> {
  readonly kind: RequestKind<Request, Response>;
}

/** What every reply says besides its body. */
export interface AnswerOf {
  readonly zxid: bigint;
  /** Both clocks, read before the request was handed to the socket. */
  readonly sentAt: Instant;
}

/** One call, from when it is made until its promise is settled. */
export class PendingRequest implements AnswerOf {
  // biome-ignore lint/suspicious/noExplicitAny: a queue holds requests of every kind
  readonly kind: RequestKind<any, any>;
  /** As the user gave it; for errors. */
  readonly path: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a queue holds requests of every kind
  readonly handlers: ReplyHandlers<any, any>;
  readonly #resolve: (result: unknown) => void;
  readonly #reject: (error: unknown) => void;
  settled = false;
  xid = 0;
  zxid = 0n;
  /** Set when it is handed to a connection. */
  sentAt: Instant = notSent;
  /** The encoded request with room for the xid, while it waits in the queue. */
  frame: Uint8Array | undefined;
  /** When it fails unless answered; `hasOwnTimer`: by a timer of its own. */
  deadlineMs: number = Number.POSITIVE_INFINITY;
  timeoutMs = 0;
  hasOwnTimer = false;
  /** Takes something from the server that would stay there otherwise: no full queue refuses it. */
  cleansUp = false;
  /** Undoes what only concerns this call: its timer and its listener on a signal. */
  #cleanUp: (() => void) | undefined;

  constructor(
    // biome-ignore lint/suspicious/noExplicitAny: a queue holds requests of every kind
    operation: Operation<any, any, any>,
    path: string | undefined,
    resolve: (result: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.kind = operation.kind;
    this.path = path;
    this.handlers = operation;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get wasSent(): boolean {
    return this.sentAt !== notSent;
  }

  /** The connection that it was sent to never was one: as if it had not been sent. */
  takeBack(): void {
    this.sentAt = notSent;
  }

  /** Whether the server may have applied a change that we were not told of. */
  get maybeApplied(): boolean {
    return this.wasSent && !this.kind.readOnly;
  }

  get operation(): string {
    return this.kind.name;
  }

  get context(): ErrorContext {
    return { path: this.path, operation: this.operation };
  }

  /** Ties the call to a signal and a timer until it is settled. */
  bind(signal: AbortSignal | undefined, timer: Timer | undefined, abandon: () => void): void {
    const stopListening = onAbort(signal, abandon);
    this.#cleanUp = () => {
      stopListening();
      timer?.cancel();
    };
  }

  succeed(result: unknown): void {
    if (this.settled) return;
    this.#settle();
    this.#resolve(result);
  }

  /**
   * @param error what the call rejects with; a function, so that none is made for nobody
   * @param refused the server has answered that it did not do it
   */
  fail(error: () => unknown, refused = false): void {
    if (this.settled) return;
    this.#settle();
    this.handlers.failed?.(this.wasSent && !refused);
    this.#reject(error());
  }

  #settle(): void {
    this.settled = true;
    this.#cleanUp?.();
    this.#cleanUp = undefined;
  }
}

const notSent: Instant = {
  monotonicMs: Number.NEGATIVE_INFINITY,
  wallMs: Number.NEGATIVE_INFINITY,
};
