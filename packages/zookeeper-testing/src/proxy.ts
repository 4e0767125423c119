/// <reference lib="esnext.disposable" preserve="true" />
import { once } from 'node:events';
import type { Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { resetSocket } from '@incumbent/zookeeper/internal';
import type { Verdict } from './proxy-link.ts';
import { Link } from './proxy-link.ts';
import { freePorts } from './server/ports.ts';

/** The target of a proxy: a TestServer, or any host (default 127.0.0.1) and port. */
export interface ProxyTarget {
  readonly host?: string;
  readonly port: number;
}

export interface ProxyCounters {
  /** Connections accepted, except those of `attempts`. */
  readonly connections: number;
  /**
   * Connections reset at once, in the mode of `cut()`. A port closed by `refuse()` counts nothing.
   */
  readonly attempts: number;
  /** Connections open at present. */
  readonly open: number;
  /** Bytes of requests passed on. */
  readonly bytesToServer: number;
  /** Bytes of replies passed on. */
  readonly bytesToClient: number;
  /** Bytes of replies that a fault kept back, except those of `silence()`. */
  readonly bytesDropped: number;
  /** Bytes that `holdRequests()` or `holdReplies()` keeps back at present, for `letGo()`. */
  readonly bytesHeld: number;
}

/** The faults of a network between one client and one server. Starts in the mode of `pass()`. */
export interface TestProxy extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** `zk://127.0.0.1:port`. */
  readonly connectionString: string;
  /** `zks://127.0.0.1:port`, for a target that is the secure port of a server. */
  readonly secureConnectionString: string;
  readonly counters: ProxyCounters;
  /**
   * Everything goes through. Connections that lost bytes, an end or their other half in another
   * mode are reset: they would go on in the middle of a frame. Resolves when the proxy listens;
   * rejects when another process took its port after `refuse()`.
   */
  pass(): Promise<void>;
  /**
   * Resets all connections, and each new one as soon as it is accepted. `cut()` followed by
   * `pass()` is a short interruption.
   */
  cut(): void;
  /** Resets all connections and closes the port: connects are refused. */
  refuse(): void;
  /**
   * A black hole: connections stay and new ones are accepted, but no byte and no end of a
   * connection comes through in either direction. Held output stays held.
   */
  silence(): void;
  /** Requests reach the server; replies and ends of connections do not come back. */
  dropReplies(): void;
  /**
   * Passes `count` more bytes towards the client (default) or the server, over all connections
   * together. Then it resets the connection that carried the last of them, and passes again. The
   * result is half a frame and then a reset, which a client that reads both at once may see as an
   * end.
   */
  cutAfterBytes(count: number, towards?: 'client' | 'server'): void;
  /**
   * Requests are held back, in order, until `letGo()`; replies come through. A client cannot
   * withdraw a request by giving up: if it ends or resets its connection, the server does not hear
   * of it. After `silence()` they can still be let go. Every other mode discards the held output,
   * and resets connections that lose something by it.
   */
  holdRequests(): void;
  /** Requests reach the server; replies and ends of connections are kept back until `letGo()`. */
  holdReplies(): void;
  /**
   * Delivers the held output, in order, and passes everything from now on. A connection whose
   * client is gone, or that lost bytes after the held ones, delivers them too, and nothing after
   * them. The server's end of it stays open and unanswered until another mode is entered. So the
   * server works on a request whose reply no client waits for.
   */
  letGo(): void;
  /**
   * Shows every chunk of requests to `listener` before it is judged. If `listener` enters a mode,
   * that counts for this chunk already, so a fault can be aimed at a request. A chunk is the result
   * of one read of a socket: mostly, but not surely, one request.
   * @returns a function that ends it
   */
  onRequest(listener: (chunk: Uint8Array) => void): () => void;
  /** New connections lead there; those that exist keep their server. */
  switchTo(target: ProxyTarget): void;
  /** Resets all connections and closes the port. Idempotent. */
  close(): Promise<void>;
}

/** Starts a TCP proxy on a free port of 127.0.0.1 in front of a server. */
export async function startProxy(target: ProxyTarget): Promise<TestProxy> {
  const host = '127.0.0.1';
  for (let tries = 1; ; tries += 1) {
    const [port] = (await freePorts(1, host)) as [number];
    const proxy = new FaultyProxy(host, port, target);
    try {
      await proxy.pass();
      return proxy;
    } catch (error) {
      if (tries === 5) throw error; // another process took the port, five times in a row
    }
  }
}

type Mode =
  | {
      readonly name:
        | 'pass'
        | 'cut'
        | 'refuse'
        | 'silence'
        | 'drop-replies'
        | 'hold-requests'
        | 'hold-replies'
        | 'closed';
    }
  | { readonly name: 'cut-after'; readonly towards: 'client' | 'server'; bytesLeft: number };

/** After these modes the held output can be let go. */
const holding: readonly Mode['name'][] = ['silence', 'hold-requests', 'hold-replies'];

class FaultyProxy implements TestProxy {
  readonly host: string;
  readonly port: number;
  readonly connectionString: string;
  readonly secureConnectionString: string;
  readonly #links = new Set<Link>();
  readonly #listeners = new Set<(chunk: Uint8Array) => void>();
  #mode: Mode = { name: 'refuse' };
  #target: ProxyTarget;
  #server: Server | undefined;
  #connections = 0;
  #attempts = 0;
  #bytesToServer = 0;
  #bytesToClient = 0;
  #bytesDropped = 0;

  constructor(host: string, port: number, target: ProxyTarget) {
    this.host = host;
    this.port = port;
    this.connectionString = `zk://${host}:${port}`;
    this.secureConnectionString = `zks://${host}:${port}`;
    this.#target = target;
  }

  get counters(): ProxyCounters {
    return {
      connections: this.#connections,
      attempts: this.#attempts,
      open: this.#links.size,
      bytesToServer: this.#bytesToServer,
      bytesToClient: this.#bytesToClient,
      bytesDropped: this.#bytesDropped,
      bytesHeld: [...this.#links].reduce((sum, { bytesHeld }) => sum + bytesHeld, 0),
    };
  }

  async pass(): Promise<void> {
    this.#enter({ name: 'pass' });
    if (this.#server !== undefined) return;
    const server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
    this.#server = server;
    try {
      server.listen(this.port, this.host);
      await once(server, 'listening');
    } catch (error) {
      if (this.#server === server) this.#server = undefined;
      throw error;
    }
  }

  cut(): void {
    this.#enter({ name: 'cut' });
    this.#resetAll();
  }

  refuse(): void {
    this.#enter({ name: 'refuse' });
    this.#stopListening();
    this.#resetAll();
  }

  silence(): void {
    this.#enter({ name: 'silence' });
  }

  dropReplies(): void {
    this.#enter({ name: 'drop-replies' });
  }

  cutAfterBytes(count: number, towards: 'client' | 'server' = 'client'): void {
    if (!Number.isSafeInteger(count) || count < 0) {
      throw new TypeError(`cutAfterBytes takes a number of bytes, not ${count}`);
    }
    this.#enter({ name: 'cut-after', towards, bytesLeft: count });
  }

  holdRequests(): void {
    this.#enter({ name: 'hold-requests' });
  }

  holdReplies(): void {
    this.#enter({ name: 'hold-replies' });
  }

  letGo(): void {
    if (!holding.includes(this.#mode.name)) throw new Error('the proxy holds nothing');
    this.#mode = { name: 'pass' };
    for (const link of this.#links) {
      const { toServer, toClient } = link.letGo();
      this.#bytesToServer += toServer;
      this.#bytesToClient += toClient;
    }
  }

  onRequest(listener: (chunk: Uint8Array) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  switchTo(target: ProxyTarget): void {
    this.#target = target;
  }

  async close(): Promise<void> {
    if (this.#mode.name === 'closed') return;
    this.#mode = { name: 'closed' };
    const server = this.#server;
    this.#stopListening();
    this.#resetAll();
    if (server?.listening === true) await once(server, 'close');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #enter(mode: Mode): void {
    if (this.#mode.name === 'closed') throw new Error('the proxy is closed');
    const before = this.#mode.name;
    this.#mode = mode;
    // A mode that loses more of the same changes nothing for the connections, nor for the held
    // output.
    const losesAsBefore =
      mode.name === 'silence' || (mode.name === 'drop-replies' && before === mode.name);
    const keeps = mode.name === 'silence' || mode.name === before;
    for (const link of this.#links) {
      if (link.isStranded || (!keeps && link.holds) || (link.damaged && !losesAsBefore)) {
        link.reset();
      }
    }
  }

  /** The port is free at once; `close` of the server waits for its connections. */
  #stopListening(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  #resetAll(): void {
    for (const link of this.#links) link.reset();
  }

  #accept(client: Socket): void {
    client.on('error', () => {});
    if (this.#mode.name === 'cut' || this.#mode.name === 'refuse' || this.#mode.name === 'closed') {
      if (this.#mode.name === 'cut') this.#attempts += 1;
      resetSocket(client);
      return;
    }
    this.#connections += 1;
    const upstream =
      this.#mode.name === 'silence'
        ? undefined
        : connect({
            host: this.#target.host ?? '127.0.0.1',
            port: this.#target.port,
            allowHalfOpen: true,
          });
    const link = new Link(client, upstream, {
      toServer: (chunk) => this.#admitRequest(chunk),
      toClient: (chunk) => this.#admitReply(chunk),
      gone: () => this.#links.delete(link),
    });
    this.#links.add(link);
  }

  #admitRequest(chunk: Uint8Array | undefined): Verdict {
    if (chunk !== undefined) for (const listener of [...this.#listeners]) listener(chunk);
    const mode = this.#mode;
    if (mode.name === 'silence') return 'none';
    if (mode.name === 'hold-requests') return 'hold';
    if (chunk === undefined) return 'all';
    const verdict = this.#cutAfter('server', chunk);
    this.#bytesToServer += verdict === 'all' ? chunk.length : verdict.cutAfter;
    return verdict;
  }

  #admitReply(chunk: Uint8Array | undefined): Verdict {
    const mode = this.#mode;
    if (mode.name === 'silence') return 'none';
    if (mode.name === 'drop-replies') {
      this.#bytesDropped += chunk?.length ?? 0;
      return 'none';
    }
    if (mode.name === 'hold-replies') return 'hold';
    if (chunk === undefined) return 'all';
    const verdict = this.#cutAfter('client', chunk);
    const passed = verdict === 'all' ? chunk.length : verdict.cutAfter;
    this.#bytesToClient += passed;
    this.#bytesDropped += chunk.length - passed;
    return verdict;
  }

  #cutAfter(
    towards: 'client' | 'server',
    chunk: Uint8Array,
  ): 'all' | { readonly cutAfter: number } {
    const mode = this.#mode;
    if (mode.name !== 'cut-after' || mode.towards !== towards) return 'all';
    if (chunk.length >= mode.bytesLeft) {
      this.#mode = { name: 'pass' };
      return { cutAfter: mode.bytesLeft };
    }
    mode.bytesLeft -= chunk.length;
    return 'all';
  }
}
