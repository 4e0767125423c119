import { OperationTimeoutError, StoreUnavailableError } from '../../base/errors.ts';
import { onAbort } from '../../base/wait.ts';
import type { EtcdAuth } from './auth.ts';
import type { GrpcCall, GrpcClient, GrpcError, GrpcMetadata, GrpcStream } from './client.ts';
import { codeOf, detailsOf, grpcCode } from './client.ts';
import { ClientClosedError } from './errors.ts';
import type { Method } from './methods.ts';
import { authenticate } from './methods.ts';

/** A stream in both directions. */
export interface CallStream<Request> {
  /** The client that it runs on. */
  readonly client: number;
  write(request: Partial<Request>): void;
  /** Nothing is reported after it. */
  cancel(): void;
}

export interface StreamListener<Response> {
  onMessage(response: Response): void;
  /** The stream is over. Called once, and never before `open` has returned. */
  onEnd(error: unknown): void;
}

/** A cancelled call harms no other call. A late one is of no use. */
const longestCallMs = 10_000;
/**
 * All calls wait for a token. Within this time another member is asked for it before a
 * lease is over.
 */
const longestTokenMs = 3_000;

/**
 * Calls under way at once. A thousand elections may want something at the same moment. Calls that
 * wait here can be given up, and cost the servers nothing then. Calls that wait at the servers are
 * carried out all the same, and make the others late as well.
 */
const callsAtOnce = 100;

export interface CallOptions {
  /** True: the call does not wait until others are done. */
  readonly isUrgent?: boolean;
  /**
   * True: doing it twice is doing it once, however late the first one lands. So when a member
   * fails, each of the others is asked once. Default: a call is repeated only when it cannot
   * have been sent.
   */
  readonly mayRepeat?: boolean;
}

/**
 * Resolves with undefined where the cluster does without users. Undefined: no call has asked yet.
 */
type AskedToken = Promise<string | undefined> | undefined;

const identity = (message: Uint8Array): Uint8Array => message;
/** The driver copies with a method that only a Buffer has. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Calls on one of several clients: on the same one until it fails, then on the next. */
export class EtcdCalls {
  readonly #clients: readonly GrpcClient[];
  readonly #auth: EtcdAuth | undefined;
  readonly #timeoutMs: number;
  readonly #closed: Set<number> = new Set();
  readonly #movedListeners: Set<() => void> = new Set();
  /** Calls that wait until another one ends, in order. */
  readonly #waiting: Set<() => void> = new Set();
  #underWay = 0;
  #current = 0;
  #token: AskedToken;
  #wasReached = false;

  /** @param timeoutMs how long a call that is repeated may take, for all members together */
  constructor(
    clients: readonly GrpcClient[],
    auth: EtcdAuth | undefined,
    timeoutMs: number = longestCallMs,
  ) {
    this.#clients = clients;
    this.#auth = auth;
    this.#timeoutMs = timeoutMs;
  }

  /** True when all clients were closed. Then no call is ever answered again. */
  get isClosed(): boolean {
    return this.#closed.size === this.#clients.length;
  }

  /** How many members can be asked. */
  get members(): number {
    return this.#clients.length - this.#closed.size;
  }

  /** True when a call has been answered. */
  get wasReached(): boolean {
    return this.#wasReached;
  }

  /** The client that is used at present. */
  get current(): number {
    return this.#current;
  }

  /**
   * Calls `listener` when another client is used from now on.
   * @returns a function that stops it
   */
  onMoved(listener: () => void): () => void {
    this.#movedListeners.add(listener);
    return () => this.#movedListeners.delete(listener);
  }

  /** A member does not answer. Uses the next one, unless another call has moved on already. */
  moveFrom(client: number): void {
    if (client !== this.#current || this.#clients.length < 2) return;
    for (let step = 1; step <= this.#clients.length; step += 1) {
      const next = (client + step) % this.#clients.length;
      if (this.#closed.has(next)) continue;
      if (next === client) return;
      this.#current = next;
      for (const listener of [...this.#movedListeners]) listener();
      return;
    }
  }

  /**
   * This member has answered, and `asked` have not. Uses it, if one of those is used at present.
   */
  #moveTo(client: number, asked: readonly number[]): void {
    if (this.#current === client || !asked.includes(this.#current)) return;
    this.#current = client;
    for (const listener of [...this.#movedListeners]) listener();
  }

  /**
   * Rejects with the error of gRPC (`GrpcError`), with `signal.reason`, or with ClientClosedError.
   */
  async call<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    signal: AbortSignal,
    { isUrgent = false, mayRepeat = false }: CallOptions = {},
  ): Promise<Response> {
    while (!isUrgent && this.#underWay >= callsAtOnce) await this.#turn(signal);
    this.#underWay += 1;
    try {
      if (mayRepeat && this.members > 1) return await this.#callMembers(method, request, signal);
      return await this.#callOnce(method, request, signal);
    } finally {
      this.#underWay -= 1;
      const [next] = this.#waiting;
      if (next !== undefined) {
        this.#waiting.delete(next);
        next();
      }
    }
  }

  /**
   * The first good answer of all members. When a member fails, the next one is asked at once. A
   * silent member gets a share of half the time. Then the next one is asked beside it, and the
   * silent one is not given up: a cluster may be slow as a whole.
   */
  #callMembers<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    signal: AbortSignal,
  ): Promise<Response> {
    const first = this.#current;
    const order = [...this.#clients.keys()]
      .map((step) => (first + step) % this.#clients.length)
      .filter((client) => !this.#closed.has(client));
    const shareMs = this.#timeoutMs / 2 / Math.max(1, order.length - 1);
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const others = new AbortController();
      let next = 0;
      let underWay = 0;
      let timer: NodeJS.Timeout | undefined;
      const settle = (finish: () => void) => {
        clearTimeout(timer);
        forget();
        finish();
        others.abort(new StoreUnavailableError('another member of etcd has answered'));
      };
      const forget = onAbort(signal, () => {
        if (signal.reason instanceof OperationTimeoutError) this.moveFrom(first);
        settle(() => reject(signal.reason));
      });
      const askNext = () => {
        clearTimeout(timer);
        const client = order[next];
        if (client === undefined || others.signal.aborted) return;
        next += 1;
        underWay += 1;
        if (next < order.length) timer = setTimeout(askNext, shareMs);
        this.#callOnce(method, request, others.signal, client).then(
          (response) => {
            this.#moveTo(client, order.slice(0, next));
            settle(() => resolve(response));
          },
          (error: unknown) => {
            underWay -= 1;
            if (!meansElsewhere(error)) settle(() => reject(error));
            else if (next < order.length) askNext();
            else if (underWay === 0) settle(() => reject(error));
          },
        );
      };
      askNext();
    });
  }

  /** @param client the one to ask. Default: the one that is used at present */
  async #callOnce<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    signal: AbortSignal,
    client?: number,
  ): Promise<Response> {
    const send = async (asked: AskedToken) =>
      this.#send(method, request, await settledToken(asked, signal), signal, longestCallMs, client);
    const asked = this.#askedToken();
    try {
      return await send(asked);
    } catch (error) {
      if (!this.#isStale(error)) throw error;
      // The call was refused before it was applied: the token has expired, or a server
      // has forgotten it.
      this.#forget(asked);
    }
    const again = this.#askedToken();
    try {
      return await send(again);
    } catch (error) {
      if (!wantsUsers(error) || !this.usesTokens) throw error;
      // Repeated only until the members agree whether they know users.
      this.#forget(again);
      throw new StoreUnavailableError(`etcd, asked without a token: ${detailsOf(error)}`, {
        cause: error,
      });
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        forget();
        resolve();
      };
      this.#waiting.add(go);
      const forget = onAbort(signal, () => {
        this.#waiting.delete(go);
        reject(signal.reason);
      });
    });
  }

  /** True when streams carry a token. It may be older than the server that a stream is open to. */
  get usesTokens(): boolean {
    return this.#auth !== undefined;
  }

  /** The next call or stream asks for another token. */
  forgetToken(): void {
    this.#token = undefined;
  }

  /** @throws ClientClosedError, or the error of gRPC about the token */
  async open<Request, Response>(
    method: Method<Request, Response>,
    listener: StreamListener<Response>,
    signal: AbortSignal,
  ): Promise<CallStream<Request>> {
    const asked = this.#askedToken();
    const token = await settledToken(asked, signal);
    signal.throwIfAborted();
    const [client, stream] = this.#onOpenClient((open): GrpcStream => {
      const metadata = this.#metadata(token);
      return metadata === undefined
        ? open.makeBidiStreamRequest(method.path, asBuffer, identity, {})
        : open.makeBidiStreamRequest(method.path, asBuffer, identity, metadata, {});
    });
    let isOver = false;
    const end = (error: unknown) => {
      if (isOver) return;
      isOver = true;
      if (this.#isStale(error)) this.#forget(asked);
      listener.onEnd(error);
    };
    stream.on('data', (bytes) => {
      if (isOver) return;
      this.#wasReached = true;
      let response: Response;
      try {
        response = method.response.decode(bytes);
      } catch (malformed) {
        stream.cancel();
        end(malformed);
        return;
      }
      listener.onMessage(response);
    });
    stream.on('error', end);
    stream.on('end', () => end(new Error('the server has ended the stream')));
    return {
      client,
      write: (message) => {
        if (!isOver) stream.write(method.request.encode(message));
      },
      cancel: () => {
        isOver = true;
        stream.cancel();
      },
    };
  }

  #send<Request, Response>(
    method: Method<Request, Response>,
    request: Partial<Request>,
    token: string | undefined,
    signal: AbortSignal,
    longestMs: number,
    wanted?: number,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const message = method.request.encode(request);
      const metadata = this.#metadata(token);
      const options = { deadline: Date.now() + longestMs };
      let forget = () => {};
      let answeredBy = wanted ?? this.#current;
      const answer = (error: GrpcError | null, response?: Uint8Array) => {
        forget();
        if (error !== null) {
          if (meansElsewhere(error)) this.moveFrom(answeredBy);
          // Any word from etcd itself proves a server. An error that gRPC makes by itself does not.
          if (/etcdserver|mvcc/.test(detailsOf(error))) this.#wasReached = true;
          return reject(error);
        }
        this.#wasReached = true;
        try {
          resolve(method.response.decode(response as Uint8Array));
        } catch (malformed) {
          reject(malformed);
        }
      };
      let call: GrpcCall;
      try {
        [answeredBy, call] = this.#onOpenClient(
          (open) =>
            metadata === undefined
              ? open.makeUnaryRequest(method.path, asBuffer, identity, message, options, answer)
              : open.makeUnaryRequest(
                  method.path,
                  asBuffer,
                  identity,
                  message,
                  metadata,
                  options,
                  answer,
                ),
          wanted,
        );
      } catch (error) {
        return reject(error);
      }
      forget = onAbort(signal, () => {
        if (signal.reason instanceof OperationTimeoutError) this.moveFrom(answeredBy);
        reject(signal.reason);
        call.cancel();
      });
    });
  }

  /**
   * A closed client throws before anything is sent, and the next one is asked.
   * @param wanted the client to use. Default: the one that is used at present
   */
  #onOpenClient<T>(
    use: (client: GrpcClient) => T,
    wanted?: number,
  ): readonly [client: number, result: T] {
    for (;;) {
      if (this.isClosed) throw new ClientClosedError();
      const index = wanted === undefined || this.#closed.has(wanted) ? this.#current : wanted;
      try {
        return [index, use(this.#clients[index] as GrpcClient)];
      } catch (error) {
        if (!/shut ?down|closed/i.test((error as Error).message)) throw error;
        this.#closed.add(index);
        this.moveFrom(index);
      }
    }
  }

  /** One request for a token, for all calls that wait for it. */
  #askedToken(): AskedToken {
    if (this.#auth !== undefined) this.#token ??= this.#askForToken(this.#auth);
    return this.#token;
  }

  /**
   * Unless another call has forgotten it already: each token costs the servers a tenth of a second.
   */
  #forget(asked: AskedToken): void {
    if (this.#token === asked) this.#token = undefined;
  }

  #isStale(error: unknown): boolean {
    return this.usesTokens && (isStaleToken(error) || wantsUsers(error));
  }

  async #askForToken({ user, password }: EtcdAuth): Promise<string | undefined> {
    const never = new AbortController().signal;
    try {
      const request = { name: user, password };
      return (await this.#send(authenticate, request, undefined, never, longestTokenMs)).token;
    } catch (error) {
      // The cluster does without users.
      if (codeOf(error) === grpcCode.failedPrecondition) return undefined;
      this.#token = undefined;
      throw error;
    }
  }

  #metadata(token: string | undefined): GrpcMetadata | undefined {
    if (this.#auth === undefined || token === undefined) return undefined;
    const metadata = new this.#auth.Metadata();
    metadata.set('token', token);
    return metadata;
  }
}

async function settledToken(asked: AskedToken, signal: AbortSignal): Promise<string | undefined> {
  if (asked === undefined) return undefined;
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal.reason));
    asked.then(resolve, reject).finally(forget);
  });
}

/** True when another member may do better. */
function meansElsewhere(error: unknown): boolean {
  const code = codeOf(error);
  return code === grpcCode.unavailable || code === grpcCode.deadlineExceeded;
}

function isStaleToken(error: unknown): boolean {
  return (
    codeOf(error) === grpcCode.unauthenticated ||
    /invalid auth token|revision of auth store is old|old revision/.test(String(error))
  );
}

/** The cluster wanted no token when we looked. `etcdctl auth enable` has been run since. */
function wantsUsers(error: unknown): boolean {
  return codeOf(error) === grpcCode.invalidArgument && /user name is empty/.test(detailsOf(error));
}
