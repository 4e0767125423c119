/// <reference lib="esnext.disposable" preserve="true" />

import type { RedisClientOptions } from 'redis';
import { ErrorReply, RedisClient } from 'redis';
import type { NodeAddress } from '../node-address.ts';
import { parseNodeAddress } from '../node-address.ts';
import { errorOfReply, NodeError, NodeUnreachableError } from './errors.ts';
import { setPatience } from './patience.ts';
import type { Replication } from './replication.ts';
import { readReplication } from './replication.ts';

export type { Replication };

/**
 * The login to the Redis nodes. It is the same for all of them, because any of them may become the
 * primary.
 */
export interface NodeAccess {
  /** For ACLs (Redis 6). Left out: the password is that of the user `default`. */
  readonly username?: string | undefined;
  /** Left out: no login. */
  readonly password?: string | undefined;
  /** true, or TLS options, for TLS. Default false. */
  readonly tls?: boolean | NodeTls | undefined;
}

/**
 * TLS options for the connections to Redis, as `tls.connect` of Node takes them. Certificates and
 * keys are PEM texts.
 */
export interface NodeTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
}

export interface NodeConnectionOptions extends NodeAccess {
  /** The name for CLIENT SETNAME. Default `incumbent-redis-failover`. */
  readonly name?: string | undefined;
  /** The time for connecting, with login and naming, and for each command. */
  readonly timeoutMs: number;
  /** Gives up connecting when it aborts, and closes the connection later. */
  readonly signal?: AbortSignal | undefined;
}

export interface CommandOptions {
  /** Default: that of the connection. */
  readonly timeoutMs?: number | undefined;
  /** Closes the connection when it aborts. The command rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The part of a connection that managers use. */
export type NodeLink = Pick<
  NodeConnection,
  'isOpen' | 'closed' | 'command' | 'replication' | 'close'
>;

/** Connects as `NodeConnection.open` does. */
export type OpenNode = (address: NodeAddress, options: NodeConnectionOptions) => Promise<NodeLink>;

/**
 * One connection to one node. It never reconnects and never sends anything twice: the first failure
 * closes it for good. For another connection call `open` again.
 */
export class NodeConnection implements AsyncDisposable {
  readonly address: NodeAddress;
  /** Aborts when the connection is closed, for whatever reason. */
  readonly closed: AbortSignal;
  readonly #timeoutMs: number;
  readonly #client: ReturnType<typeof createRaw>;
  /**
   * The controller of `closed`. It also ends the socket while that is still connecting, which
   * `destroy` does not.
   */
  readonly #closing: AbortController = new AbortController();
  /** For every command that is not answered: rejects it. */
  readonly #waiting: Set<() => void> = new Set();
  #stopListening: () => void = () => {};
  /** Why the connection was closed; undefined after `close`. */
  #trouble: unknown;

  /**
   * Connects, logs in and names the connection. Nothing else is sent.
   * @returns rejects with NodeUnreachableError, NodeRefusedError, NodeCommandError (such as -BUSY),
   *   InvalidOptionError for an address that is none, and with the reason of `signal`
   */
  static async open(address: NodeAddress, options: NodeConnectionOptions): Promise<NodeConnection> {
    options.signal?.throwIfAborted();
    const connection = new NodeConnection(address, options);
    await connection.#open(options);
    return connection;
  }

  /** Use `NodeConnection.open`. */
  private constructor(address: NodeAddress, options: NodeConnectionOptions) {
    this.address = address;
    this.#timeoutMs = options.timeoutMs;
    this.closed = this.#closing.signal;
    this.#client = createRaw(address, options, this.closed);
    this.#client.on('error', (error) => this.#end(error));
  }

  get isOpen(): boolean {
    return !this.closed.aborted && this.#client.isReady;
  }

  /**
   * @param parts the command and its arguments
   * @returns strings, numbers, null and arrays of these. Rejects with NodeCommandError or
   *   NodeRefusedError for an error that the node answers. If no answer comes in time, it rejects
   *   with NodeUnreachableError and closes the connection; whether the command was executed is
   *   unknown. The same holds for `signal`, with its reason
   */
  async command(parts: readonly string[], options: CommandOptions = {}): Promise<unknown> {
    options.signal?.throwIfAborted();
    if (!this.isOpen) throw this.#unreachable();
    const { timeoutMs = this.#timeoutMs, signal } = options;
    const what = commandName(parts);
    return this.#bounded(what, timeoutMs, signal, this.#client.sendCommand([...parts]));
  }

  /**
   * @returns rejects like `command`, and with NodeRefusedError for a Sentinel and a node of a
   *   cluster
   */
  replication(): Promise<Replication> {
    return readReplication(this.address, (parts) => this.command(parts));
  }

  /** Closes it at once: commands that are not answered reject. Idempotent. */
  close(): void {
    this.#end(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  async #open({ signal, timeoutMs }: NodeConnectionOptions): Promise<void> {
    const connecting = this.#client.connect().finally(() => {
      // Connecting may have succeeded after it was given up.
      if (this.closed.aborted) this.#client.destroy();
    });
    try {
      await this.#bounded('the connection', timeoutMs, signal, connecting);
    } catch (error) {
      this.close();
      throw error;
    }
    const onAbort = () => this.close();
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#stopListening = () => signal?.removeEventListener('abort', onAbort);
    if (!this.isOpen) throw this.#unreachable();
  }

  #bounded<T>(
    what: string,
    timeoutMs: number,
    signal: AbortSignal | undefined,
    operation: Promise<T>,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const onAbort = () => this.#end(signal?.reason);
      const stopWaiting = setPatience(timeoutMs, () => {
        const why = `has not answered ${what} within ${timeoutMs} ms`;
        this.#end(new NodeUnreachableError(this.address, why));
      });
      signal?.addEventListener('abort', onAbort, { once: true });
      const finish = (settle: () => void) => {
        stopWaiting();
        signal?.removeEventListener('abort', onAbort);
        this.#waiting.delete(fail);
        settle();
      };
      const fail = (error?: unknown) => finish(() => reject(this.#errorOf(what, signal, error)));
      this.#waiting.add(fail);
      operation.then((value) => finish(() => resolve(value)), fail);
    });
  }

  #errorOf(what: string, signal: AbortSignal | undefined, error: unknown): unknown {
    if (signal?.aborted === true) return signal.reason;
    if (error instanceof ErrorReply) return errorOfReply(this.address, what, error);
    return this.#unreachable(error);
  }

  #unreachable(error?: unknown): NodeError {
    const cause = this.#trouble ?? error;
    if (cause instanceof NodeError) return cause;
    if (cause instanceof ErrorReply) return errorOfReply(this.address, 'the connection', cause);
    const why = cause instanceof Error ? cause.message || cause.name : 'it was closed here';
    return new NodeUnreachableError(this.address, `has no connection with us: ${why}`, cause);
  }

  #end(trouble: unknown): void {
    if (this.closed.aborted) return;
    this.#trouble = trouble;
    this.#stopListening();
    this.#closing.abort();
    this.#client.destroy();
    for (const fail of [...this.#waiting]) fail();
  }
}

/**
 * `createClient` makes a class with all commands for each address, which takes a thousand times as
 * long as making a client of that class. RESP 2 needs AUTH and CLIENT SETNAME, which every version
 * knows. RESP 3 would need HELLO.
 */
const respVersion = { RESP: 2 } as const;
const makeClient = RedisClient.factory(respVersion);

function createRaw(
  address: NodeAddress,
  { username, password, tls, name, timeoutMs }: NodeConnectionOptions,
  signal: AbortSignal,
) {
  const { host, port } = parseNodeAddress('the address of a Redis node', address);
  const secure =
    tls === undefined || tls === false ? {} : { ...(tls === true ? {} : tls), tls: true };
  const socket = {
    ...secure,
    host,
    port,
    signal,
    reconnectStrategy: false,
    // Our own timer counts. This one runs on while the process is suspended.
    connectTimeout: 2 * timeoutMs + 1_000,
  };
  return makeClient({
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    name: name ?? 'incumbent-redis-failover',
    ...respVersion,
    disableOfflineQueue: true,
    disableClientInfo: true,
    socket: socket as NonNullable<RedisClientOptions['socket']>,
  });
}

/** The command for messages, never with its arguments: they may hold a password. */
function commandName(parts: readonly string[]): string {
  const subcommands = new Set(['CLIENT', 'CONFIG']);
  const [command = '', second = ''] = parts.map((part) => part.toUpperCase());
  return subcommands.has(command) ? `${command} ${second}` : command;
}
