import { once } from 'node:events';
import type { AddressInfo, Socket, Server as TcpServer } from 'node:net';
import { createServer } from 'node:net';
import { Connection } from './connection.ts';
import type { DataTree } from './data-tree.ts';
import type { FakeServer } from './fake-server.ts';
import type { FakeRequest, FaultPlan } from './faults.ts';
import type { Settings } from './options.ts';
import { LocalSessions } from './sessions.ts';
import type { Replica, State } from './state.ts';
import type { TreeEvent } from './watches.ts';
import { Watches } from './watches.ts';

export interface Shared {
  readonly state: State;
  readonly faults: FaultPlan;
  readonly settings: Settings;
  readonly log: (request: FakeRequest) => void;
}

/** The last view of a lagging server, and what it will see once it catches up. */
interface Frozen {
  readonly tree: DataTree;
  readonly zxid: bigint;
  readonly later: (() => void)[];
}

/** Replies that come only when the server has seen everything before. */
const waitedFor = /^(create|delete|set(Data|Acl)$|multi$|sync$|reconfig|closeSession)/;

/** @see FakeServer */
export class Server implements FakeServer, Replica {
  readonly id: number;
  readonly state: State;
  readonly faults: FaultPlan;
  readonly settings: Settings;
  readonly log: (request: FakeRequest) => void;
  readonly watches: Watches = new Watches();
  /** Those that began while it was without a quorum. */
  readonly localSessions: LocalSessions;
  readonly #connections = new Set<Connection>();
  readonly #bySession = new Map<bigint, Connection>();
  #tcp: TcpServer | undefined;
  #port = 0;
  #frozen: Frozen | undefined;
  #silent = false;
  #readOnly = false;
  #hasLocalSessions = true;

  constructor(id: number, { state, faults, settings, log }: Shared) {
    this.id = id;
    this.localSessions = new LocalSessions(id);
    this.state = state;
    this.faults = faults;
    this.settings = settings;
    this.log = log;
    state.replicas.add(this);
  }

  get port(): number {
    return this.#port;
  }

  get connectionString(): string {
    return `zk://127.0.0.1:${this.#port}`;
  }

  get tree(): DataTree {
    return this.#frozen?.tree ?? this.state.tree;
  }

  get zxid(): bigint {
    return this.#frozen?.zxid ?? this.state.lastZxid;
  }

  get isReadOnly(): boolean {
    return this.#readOnly;
  }

  get hasLocalSessions(): boolean {
    return this.#hasLocalSessions;
  }

  get connections(): ReadonlySet<Connection> {
    return this.#connections;
  }

  async listen(port: number = this.#port): Promise<void> {
    if (this.#tcp !== undefined) return;
    const tcp = createServer((socket) => this.#accept(socket));
    this.#tcp = tcp;
    try {
      tcp.listen(port, '127.0.0.1');
      await once(tcp, 'listening');
    } catch (error) {
      this.#tcp = undefined;
      throw error;
    }
    tcp.on('error', () => {}); // of single accepts: the client notices
    this.#port = (tcp.address() as AddressInfo).port;
  }

  refuse(): Promise<void> {
    // Not awaited until 'close': that waits for the connections, and those stay.
    this.#tcp?.close();
    this.#tcp = undefined;
    return Promise.resolve();
  }

  async close(): Promise<void> {
    const tcp = this.#tcp;
    this.#tcp = undefined;
    this.state.replicas.delete(this);
    const closed = tcp === undefined ? undefined : once(tcp, 'close');
    tcp?.close();
    for (const connection of this.#connections) connection.destroy();
    await closed;
  }

  dropConnections(): void {
    for (const connection of [...this.#connections]) connection.end();
  }

  silence(): void {
    this.#silent = true;
    for (const connection of this.#connections) connection.silence(true);
  }

  unsilence(): void {
    this.#silent = false;
    for (const connection of this.#connections) connection.silence(false);
  }

  readOnly(on: boolean, options: { readonly localSessions?: boolean } = {}): void {
    this.#readOnly = on;
    this.#hasLocalSessions = options.localSessions ?? true;
    this.localSessions.clear();
    this.dropConnections();
  }

  lag(on: boolean): void {
    if (on === (this.#frozen !== undefined)) return;
    if (on) {
      this.#frozen = { tree: this.state.tree.copy(), zxid: this.state.lastZxid, later: [] };
      return;
    }
    const later = this.#frozen?.later ?? [];
    this.#frozen = undefined;
    for (const happen of later) happen();
  }

  /** Whether the reply to this request waits until the server has caught up. */
  isWaitedFor({ opcode }: FakeRequest): boolean {
    return this.#frozen !== undefined && waitedFor.test(opcode);
  }

  /** Now, or when the server has caught up. */
  whenCurrent(happen: () => void): void {
    if (this.#frozen === undefined) happen();
    else this.#frozen.later.push(happen);
  }

  committed(events: readonly TreeEvent[]): void {
    if (events.length === 0) return;
    this.whenCurrent(() => {
      for (const event of events) this.watches.trigger(event);
    });
  }

  sessionEnded(id: bigint): void {
    this.whenCurrent(() => this.connectionOf(id)?.end());
  }

  connectionOf(sessionId: bigint): Connection | undefined {
    return this.#bySession.get(sessionId);
  }

  attach(connection: Connection): void {
    this.#bySession.set(connection.sessionId, connection);
  }

  /** A connection that serves no more: its watches end with it. */
  forget(connection: Connection): void {
    this.watches.removeAll(connection);
    const { sessionId } = connection;
    if (this.#bySession.get(sessionId) === connection) this.#bySession.delete(sessionId);
  }

  closed(connection: Connection): void {
    this.#connections.delete(connection);
  }

  #accept(socket: Socket): void {
    const connection = new Connection(this, socket);
    this.#connections.add(connection);
    if (this.faults.refuses()) connection.end();
    else if (this.#silent) connection.silence(true);
  }
}
