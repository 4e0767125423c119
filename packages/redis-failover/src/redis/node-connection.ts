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

/** How Redis nodes are logged in to. The same for all of them: any may become the primary. */
export interface NodeAccess {
  /** For ACLs (Redis 6); without it the password is that of the user `default`. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Default false. The certificates are PEM. */
  readonly tls?: boolean | NodeTls | undefined;
}

export interface NodeTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
}

export interface NodeConnectionOptions extends NodeAccess {
  /** CLIENT SETNAME; default `incumbent-redis-failover`. */
  readonly name?: string | undefined;
  /** Of connecting with all that belongs to it, and of each command. */
  readonly timeoutMs: number;
  /** Ends the connecting, and closes the connection afterwards. */
  readonly signal?: AbortSignal | undefined;
}

export interface CommandOptions {
  /** Default: that of the connection. */
  readonly timeoutMs?: number | undefined;
  /** Closes the connection, and rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What managers need of a connection. */
export type NodeLink = Pick<
  NodeConnection,
  'isOpen' | 'closed' | 'command' | 'replication' | 'close'
>;

/** Connects as `NodeConnection.open` does. */
export type OpenNode = (address: NodeAddress, options: NodeConnectionOptions) => Promise<NodeLink>;

/**
 * One connection to one node. It never reconnects and never sends anything twice: after the first
 * trouble it is closed for good, and who wants another opens another.
 */
export class NodeConnection implements AsyncDisposable {
  readonly address: NodeAddress;
  /** Aborts when it is closed, by whomever. */
  readonly closed: AbortSignal;
  readonly #timeoutMs: number;
  readonly #client: ReturnType<typeof createRaw>;
  /** Of `closed`. It ends the socket, which `destroy` does not while it is still connecting. */
  readonly #closing: AbortController = new AbortController();
  /** Of every command that is not answered: rejects it. */
  readonly #waiting: Set<() => void> = new Set();
  #stopListening: () => void = () => {};
  /** Why it is closed, where it was not by `close`. */
  #trouble: unknown;

  /**
   * Connected, logged in and named: nothing else has been sent.
   * @returns rejects NodeUnreachableError, NodeRefusedError, NodeCommandError (such as -BUSY),
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
   * @returns strings, numbers, null and arrays of these. Rejects NodeCommandError and
   *   NodeRefusedError for what the node answers, NodeUnreachableError without an answer in time:
   *   then the connection is closed, and whether the command was executed is unknown; with the
   *   reason of `signal`, likewise
   */
  async command(parts: readonly string[], options: CommandOptions = {}): Promise<unknown> {
    options.signal?.throwIfAborted();
    if (!this.isOpen) throw this.#unreachable();
    const { timeoutMs = this.#timeoutMs, signal } = options;
    const what = commandName(parts);
    return this.#bounded(what, timeoutMs, signal, this.#client.sendCommand([...parts]));
  }

  /** @returns rejects like `command`; NodeRefusedError also for a Sentinel and a cluster's node */
  replication(): Promise<Replication> {
    return readReplication(this.address, (parts) => this.command(parts));
  }

  /** At once: commands that are not answered reject. Idempotent. */
  close(): void {
    this.#end(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  async #open({ signal, timeoutMs }: NodeConnectionOptions): Promise<void> {
    const connecting = this.#client.connect().finally(() => {
      // It may have succeeded after it was given up.
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
 * `createClient` makes a class of all commands anew for each address, which takes a thousand times as
 * long as to make a client of it. RESP 2: AUTH and CLIENT SETNAME, which every version knows, in place
 * of HELLO.
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
    // The timer that counts is ours: this one runs on while the process stands still.
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

/** Never the arguments: they may hold a password. */
function commandName(parts: readonly string[]): string {
  const subcommands = new Set(['CLIENT', 'CONFIG']);
  const [command = '', second = ''] = parts.map((part) => part.toUpperCase());
  return subcommands.has(command) ? `${command} ${second}` : command;
}
