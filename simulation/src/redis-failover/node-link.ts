import type {
  NodeConnectionOptions,
  NodeLink,
  OpenNode,
} from '../../../packages/redis-failover/dist/redis/node-connection.js';
import type { Host, Owner } from '../harness/host.ts';
import type { World } from '../harness/world.ts';
import { ErrorReply } from '../redis/reply.ts';
import type { Library } from './library.ts';
import type { RedisWorld } from './nodes.ts';
import { NodeSocket } from './nodes.ts';

interface Place {
  readonly library: Library;
  readonly redis: RedisWorld;
  readonly world: World;
  readonly host: Host;
  readonly owner: Owner & { readonly sockets: Set<NodeSocket> };
}

/** As `NodeConnection.open`, to modelled servers. */
export function openNodeOf(place: Place): OpenNode {
  return async (address, options) => {
    options.signal?.throwIfAborted();
    const link = new ModelledLink(place, address, options);
    await link.open();
    return link as NodeLink;
  };
}

class ModelledLink {
  readonly #place: Place;
  readonly #address: string;
  readonly #options: NodeConnectionOptions;
  readonly #socket: NodeSocket;
  readonly #closing = new AbortController();
  readonly #waiting = new Set<(error: unknown) => void>();
  readonly #onAbort = () => this.#end(this.#options.signal?.reason);
  #trouble: unknown;

  constructor(place: Place, address: string, options: NodeConnectionOptions) {
    this.#place = place;
    this.#address = address;
    this.#options = options;
    this.#socket = new NodeSocket(place.redis, place.world, place.host, place.owner);
    this.#socket.onEnd = (why) => this.#end(why);
  }

  get isOpen(): boolean {
    return !this.closed.aborted && this.#socket.isOpen;
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  async open(): Promise<void> {
    const { name = 'incumbent-redis-failover', timeoutMs, signal } = this.#options;
    const connecting = this.#socket
      .connect(this.#address)
      .then(() => this.#socket.send(['CLIENT', 'SETNAME', name]));
    await this.#bounded('the connection', timeoutMs, signal, connecting).catch((error: unknown) => {
      this.close();
      throw error;
    });
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (!this.isOpen) throw this.#unreachable();
  }

  async command(
    parts: readonly string[],
    options: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<unknown> {
    options.signal?.throwIfAborted();
    if (!this.isOpen) throw this.#unreachable();
    const { timeoutMs = this.#options.timeoutMs, signal } = options;
    return this.#bounded(parts.join(' '), timeoutMs, signal, this.#socket.send(parts));
  }

  replication() {
    return this.#place.library.readReplication(this.#address, (parts) => this.command(parts));
  }

  close(): void {
    this.#end(undefined);
  }

  #bounded<T>(
    what: string,
    timeoutMs: number,
    signal: AbortSignal | undefined,
    operation: Promise<T>,
  ): Promise<T> {
    const { library, host, owner } = this.#place;
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#end(signal?.reason);
      const timer = host.setTimer(
        owner,
        () => {
          const why = `has not answered ${what} within ${timeoutMs} ms`;
          this.#end(new library.NodeUnreachableError(this.#address, why));
        },
        timeoutMs,
      );
      signal?.addEventListener('abort', onAbort, { once: true });
      const finish = (settle: () => void) => {
        timer.cancel();
        signal?.removeEventListener('abort', onAbort);
        this.#waiting.delete(fail);
        settle();
      };
      const fail = (error: unknown) => finish(() => reject(this.#errorOf(what, signal, error)));
      this.#waiting.add(fail);
      operation.then((value) => finish(() => resolve(value)), fail);
    });
  }

  #errorOf(what: string, signal: AbortSignal | undefined, error: unknown): unknown {
    if (signal?.aborted === true) return signal.reason;
    if (error instanceof ErrorReply) {
      return this.#place.library.errorOfReply(this.#address, what, error);
    }
    return this.#unreachable(error);
  }

  #unreachable(error?: unknown): Error {
    const cause = this.#trouble ?? error;
    const { NodeUnreachableError } = this.#place.library;
    if (cause instanceof NodeUnreachableError) return cause;
    const why = cause instanceof Error ? cause.message : 'it was closed here';
    return new NodeUnreachableError(this.#address, `has no connection with us: ${why}`, cause);
  }

  #end(trouble: unknown): void {
    if (this.closed.aborted) return;
    this.#trouble = trouble;
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    this.#closing.abort();
    this.#socket.close();
    for (const fail of [...this.#waiting]) fail(trouble);
  }
}
