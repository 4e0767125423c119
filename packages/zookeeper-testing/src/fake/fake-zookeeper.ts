/// <reference lib="esnext.disposable" preserve="true" />
import type { Acl, Stat } from '@incumbent/zookeeper';
import { statOf } from './data-tree.ts';
import type { FakeServer } from './fake-server.ts';
import type { FakeRequest, Faults } from './faults.ts';
import { FaultPlan } from './faults.ts';
import type { FakeZooKeeperOptions } from './options.ts';
import { settingsOf } from './options.ts';
import type { Shared } from './server.ts';
import { Server } from './server.ts';
import { State } from './state.ts';
import type { WatchMode } from './watches.ts';

export interface FakeNode {
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

export interface FakeSession {
  readonly id: bigint;
  readonly timeoutMs: number;
  /** By the fake's clock: when it ends unless something is heard of it before. */
  readonly expiresAtMs: number;
  readonly ephemerals: readonly string[];
  /** Whether a connection is attached to it. */
  readonly connected: boolean;
}

export interface FakeWatch {
  readonly sessionId: bigint;
  readonly path: string;
  /** An `exists` watch is one on data. A persistent watch is listed under both. */
  readonly kind: 'data' | 'children';
  readonly mode: WatchMode;
}

export interface LoggedRequest extends FakeRequest {
  /** By the fake's clock. */
  readonly atMs: number;
}

/** Where a simulated clock begins: Sat Jan 01 2000, so that times are the same in every run. */
const beginningMs = Date.UTC(2000, 0, 1);

/**
 * A ZooKeeper server in this process, on a loopback socket. It answers as 3.8 does, and fails when
 * a test tells it to. Its clock stands still until the test calls `advance`, or goes on by itself
 * with `realTime`. The client's clock is another one. Nothing is kept on disk. It knows no TLS, no
 * quotas, and `reconfig` is disabled. It answers SASL as a server without a login configuration:
 * with no token, so that a client with `sasl` is never connected.
 *
 *     await using fake = await FakeZooKeeper.start({ tickTimeMs: 100 });
 *     const client = await connect(fake.connectionString);
 *     fake.faults.next({ opcode: 'create2', path: '/a' }, 'dropAfter');
 */
export class FakeZooKeeper implements AsyncDisposable {
  /** The faults that are to strike. */
  readonly faults: Faults;
  readonly #shared: Shared;
  readonly #servers: Server[] = [];
  readonly #requests: LoggedRequest[] = [];
  #clock: ReturnType<typeof setInterval> | undefined;

  private constructor(options: FakeZooKeeperOptions) {
    const settings = settingsOf(options);
    const nowMs = settings.realTime ? Date.now() : beginningMs;
    const state = new State({ tickTimeMs: settings.tickTimeMs, epoch: settings.epoch, nowMs });
    const faults = new FaultPlan();
    this.faults = faults;
    const log = (request: FakeRequest): void => this.#log(request);
    this.#shared = { state, faults, settings, log };
    if (settings.realTime) {
      this.#clock = setInterval(() => state.advanceTo(Date.now()), settings.tickTimeMs);
      this.#clock.unref();
    }
  }

  /** Rejects if the port is taken, or an option makes no sense. */
  static async start(options: FakeZooKeeperOptions = {}): Promise<FakeZooKeeper> {
    const fake = new FakeZooKeeper(options);
    try {
      await fake.#add(options.port ?? 0);
    } catch (error) {
      await fake.close();
      throw error;
    }
    return fake;
  }

  /** The first server's. */
  get port(): number {
    return this.#first.port;
  }

  /** `zk://127.0.0.1:port`, with all servers. */
  get connectionString(): string {
    return `zk://${this.#servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
  }

  /** All servers, the first one first. */
  get servers(): readonly FakeServer[] {
    return [...this.#servers];
  }

  /** One more server over the same nodes and sessions, on a port of its own. */
  addServer(options: { readonly port?: number } = {}): Promise<FakeServer> {
    return this.#add(options.port ?? 0);
  }

  /** The time by the fake's clock, in ms since 1970. */
  get nowMs(): number {
    return this.#shared.state.nowMs;
  }

  /**
   * Lets that much time pass at once. Sessions end of which nothing was heard, and containers and
   * nodes with a TTL are deleted. Throws with `realTime`.
   */
  advance(ms: number): void {
    if (this.#shared.settings.realTime) throw new Error('the clock is the real one (realTime)');
    if (!Number.isInteger(ms) || ms < 0) throw new RangeError(`time goes on, not by ${ms} ms`);
    const { state } = this.#shared;
    state.advanceTo(state.nowMs + ms);
  }

  /** Ends a session as if nothing had been heard of it. Throws if there is none with that id. */
  expireSession(id: bigint): void {
    const { state } = this.#shared;
    if (state.sessions.get(id) === undefined) {
      throw new RangeError(`no session 0x${id.toString(16)}`);
    }
    state.endSession(id);
  }

  get sessions(): readonly FakeSession[] {
    const { sessions, tree } = this.#shared.state;
    return [...sessions.values()].map(({ id, timeoutMs, expiresAtMs }) => ({
      ...{ id, timeoutMs, expiresAtMs, ephemerals: tree.ephemeralsOf(id) },
      connected: this.#servers.some((server) => server.connectionOf(id) !== undefined),
    }));
  }

  /** The zxid of the last transaction. */
  get lastZxid(): bigint {
    return this.#shared.state.lastZxid;
  }

  /** Every node by its path. A copy. */
  tree(): ReadonlyMap<string, FakeNode> {
    const nodes = new Map<string, FakeNode>();
    for (const [path, node] of this.#shared.state.tree.entries()) {
      nodes.set(path, { data: node.data, acl: node.acl, stat: statOf(node) });
    }
    return nodes;
  }

  /** The watches of all connections, or of one session's. */
  watches(sessionId?: bigint): readonly FakeWatch[] {
    const found: FakeWatch[] = [];
    for (const { connections, watches } of this.#servers) {
      for (const connection of connections) {
        if (sessionId !== undefined && connection.sessionId !== sessionId) continue;
        for (const [kind, path, mode] of watches.of(connection)) {
          found.push({ sessionId: connection.sessionId, path, kind, mode });
        }
      }
    }
    return found;
  }

  /** The last requests that arrived, the oldest first; `maxLoggedRequests` bounds them. A copy. */
  get requests(): readonly LoggedRequest[] {
    return [...this.#requests];
  }

  /** Of every server. @see FakeServer.silence */
  silence(): void {
    for (const server of this.#servers) server.silence();
  }

  /** Of every server. @see FakeServer.unsilence */
  unsilence(): void {
    for (const server of this.#servers) server.unsilence();
  }

  /** Of every server: stops listening; connections stay. */
  async refuse(): Promise<void> {
    for (const server of this.#servers) await server.refuse();
  }

  /** Of every server: listens again, on the same ports. */
  async listen(): Promise<void> {
    for (const server of this.#servers) await server.listen();
  }

  /** Of every server: closes all connections. The sessions live on. */
  dropConnections(): void {
    for (const server of this.#servers) server.dropConnections();
  }

  /** Closes everything. Idempotent. */
  async close(): Promise<void> {
    clearInterval(this.#clock);
    this.faults.clear();
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #first(): Server {
    return this.#servers[0] as Server;
  }

  async #add(port: number): Promise<Server> {
    const server = new Server(this.#servers.length + 1, this.#shared);
    await server.listen(port);
    this.#servers.push(server);
    return server;
  }

  #log(request: FakeRequest): void {
    this.#requests.push({ ...request, atMs: this.nowMs });
    if (this.#requests.length > this.#shared.settings.maxLoggedRequests) this.#requests.shift();
  }
}
