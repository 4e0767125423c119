import type { Instant, Timer } from '../clock.ts';
import type { ErrorContext } from '../errors.ts';
import { onAbort } from '../on-abort.ts';
import type { RequestKind } from '../protocol/requests.ts';

/**
 * How a reply is handled. Each function is called as soon as the reply is read, before the next
 * reply.
 */
export interface ReplyHandlers<Response, Result> {
  /** @throws the error that the call rejects with */
  complete(response: Response, request: AnswerOf): Result;
  /** If given, a NoNode error is an answer like any other. */
  absent?(request: AnswerOf): Result;
  /** If given, a NoWatcher error is an answer like any other. */
  noWatcher?(request: AnswerOf): Result;
  /**
   * Called once if the call ends in any other way than by one of the functions above.
   * @param mayBeDone it was sent, and no answer says that the server refused it
   */
  failed?(mayBeDone: boolean): void;
}

/**
 * One kind of call: its request, and how the reply is handled. It is made once if possible, because
 * there are many calls.
 */
export interface Operation<Request, Response, Result> extends ReplyHandlers<Response, Result> {
  readonly kind: RequestKind<Request, Response>;
}

/** The fields of every reply besides its body. */
export interface AnswerOf {
  readonly zxid: bigint;
  /** Both clocks, read before the request was handed to the socket. */
  readonly sentAt: Instant;
}

/** One call, from its beginning until its promise is settled. */
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
  /** Set when the request is handed to a connection. */
  sentAt: Instant = notSent;
  /** The encoded request with room for the xid, while it waits in the queue. */
  frame: Uint8Array | undefined;
  /**
   * When the call fails unless it is answered. With `hasOwnTimer` a timer of its own decides that.
   */
  deadlineMs: number = Number.POSITIVE_INFINITY;
  timeoutMs = 0;
  hasOwnTimer = false;
  /**
   * Whether it removes something from the server that would otherwise stay there. Then a full queue
   * does not refuse it.
   */
  cleansUp = false;
  /** Ends this call's own timer, and its listener on a signal. */
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

  /** Undoes the sending: the handshake of its connection failed, so the server has not seen it. */
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
   * @param error makes the error that the call rejects with, so that none is made for a settled
   *   call
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
