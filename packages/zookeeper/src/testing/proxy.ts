/// <reference lib="esnext.disposable" preserve="true" />
import { once } from 'node:events';
import type { Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { resetSocket } from '../net/reset.ts';
import { freePorts } from './server/ports.ts';

/** Where a proxy leads: a TestServer, or any host (default 127.0.0.1) and port. */
export interface ProxyTarget {
  readonly host?: string;
  readonly port: number;
}

export interface ProxyCounters {
  /** Connections accepted, except those of `attempts`. */
  readonly connections: number;
  /** Connections reset at once, in the mode of `cut()`. A port closed by `refuse()` counts nothing. */
  readonly attempts: number;
  /** Connections open at present. */
  readonly open: number;
  /** Bytes of requests passed on. */
  readonly bytesToServer: number;
  /** Bytes of replies passed on. */
  readonly bytesToClient: number;
  /** Bytes of replies that a fault kept back, except those of `silence()`. */
  readonly bytesDropped: number;
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
   * Everything goes through. Connections that lost bytes, an end or their other half in another mode
   * are reset: they would go on in the middle of a frame. Resolves when the proxy listens; rejects
   * when another process took its port after `refuse()`.
   */
  pass(): Promise<void>;
  /** Resets all connections, and each new one as soon as it is accepted. `cut()` followed by `pass()`
   *  is a short interruption. */
  cut(): void;
  /** Resets all connections and closes the port: connects are refused. */
  refuse(): void;
  /** A black hole: connections stay and new ones are accepted, but no byte and no end of a connection
   *  comes through in either direction. */
  silence(): void;
  /** Requests reach the server; replies and ends of connections do not come back. */
  dropReplies(): void;
  /**
   * Passes `count` more bytes towards the client, over all connections together, then resets the
   * connection that carried the last of them, and passes again: half a frame, then a reset (which a
   * client that reads both at once may see as an end).
   */
  cutAfterBytes(count: number): void;
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
      if (tries === 5) throw error; // somebody took the port, five times over
    }
  }
}

type Mode =
  | { readonly name: 'pass' | 'cut' | 'refuse' | 'silence' | 'drop-replies' | 'closed' }
  | { readonly name: 'cut-after'; bytesLeft: number };

class FaultyProxy implements TestProxy {
  readonly host: string;
  readonly port: number;
  readonly connectionString: string;
  readonly secureConnectionString: string;
  readonly #links = new Set<Link>();
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

  cutAfterBytes(count: number): void {
    if (!Number.isSafeInteger(count) || count < 0) {
      throw new TypeError(`cutAfterBytes takes a number of bytes, not ${count}`);
    }
    this.#enter({ name: 'cut-after', bytesLeft: count });
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
    const losesAsBefore =
      mode.name === 'silence' || (mode.name === 'drop-replies' && this.#mode.name === mode.name);
    this.#mode = mode;
    if (losesAsBefore) return;
    for (const link of this.#links) if (link.damaged) link.reset();
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
    if (this.#mode.name === 'silence') return 'none';
    this.#bytesToServer += chunk?.length ?? 0;
    return 'all';
  }

  #admitReply(chunk: Uint8Array | undefined): Verdict {
    const mode = this.#mode;
    if (mode.name === 'silence') return 'none';
    if (mode.name === 'drop-replies') {
      this.#bytesDropped += chunk?.length ?? 0;
      return 'none';
    }
    if (chunk === undefined) return 'all';
    if (mode.name === 'cut-after' && chunk.length >= mode.bytesLeft) {
      this.#mode = { name: 'pass' };
      this.#bytesDropped += chunk.length - mode.bytesLeft;
      this.#bytesToClient += mode.bytesLeft;
      return { cutAfter: mode.bytesLeft };
    }
    if (mode.name === 'cut-after') mode.bytesLeft -= chunk.length;
    this.#bytesToClient += chunk.length;
    return 'all';
  }
}

/** What may go on, of a chunk or (undefined) of the end of a connection. */
type Verdict = 'all' | 'none' | { readonly cutAfter: number };

interface Gate {
  toServer(chunk: Uint8Array | undefined): Verdict;
  toClient(chunk: Uint8Array | undefined): Verdict;
  /** Both halves are closed. */
  gone(): void;
}

/** One connection of a client, and ours to the server. */
class Link {
  /** Something did not come through: it cannot go on as if nothing had been. */
  damaged: boolean;
  readonly #client: Socket;
  readonly #upstream: Socket | undefined;
  #open: number;

  constructor(client: Socket, upstream: Socket | undefined, gate: Gate) {
    this.damaged = upstream === undefined;
    this.#client = client;
    this.#upstream = upstream;
    this.#open = upstream === undefined ? 1 : 2;
    this.#carry(client, upstream, (chunk) => gate.toServer(chunk), gate);
    if (upstream !== undefined) {
      this.#carry(upstream, client, (chunk) => gate.toClient(chunk), gate);
    }
  }

  reset(): void {
    resetSocket(this.#client);
    if (this.#upstream !== undefined) resetSocket(this.#upstream);
  }

  #carry(
    from: Socket,
    to: Socket | undefined,
    admit: (chunk: Uint8Array | undefined) => Verdict,
    gate: Gate,
  ): void {
    let failed = false;
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      const verdict = admit(chunk);
      if (verdict === 'none' || to === undefined) {
        this.damaged = true;
      } else if (verdict === 'all') {
        if (!to.write(chunk)) {
          from.pause();
          to.once('drain', () => from.resume());
        }
      } else {
        from.pause();
        // A reset throws away what is not written yet.
        to.write(chunk.subarray(0, verdict.cutAfter), () => this.reset());
      }
    });
    from.on('end', () => {
      if (admit(undefined) === 'all') to?.end();
      else this.damaged = true;
    });
    from.on('error', () => {
      failed = true;
    });
    from.on('close', () => {
      this.#open -= 1;
      if (this.#open === 0) gate.gone();
      else if (admit(undefined) !== 'all') this.damaged = true;
      else if (failed) this.reset();
      else to?.end();
    });
  }
}
