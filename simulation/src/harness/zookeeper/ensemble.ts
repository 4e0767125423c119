/**
 * ZooKeeper servers, as far as elections can tell. A leader orders transactions and keeps the
 * sessions, and followers apply them later. Servers may lose their quorum and for a while not know
 * it.
 */
import type { Random } from '../random.ts';
import type { World } from '../world.ts';
import type { Connection } from './connection.ts';
import type { Code, Operation, Prepared, Result, Transaction } from './tree.ts';
import { Tree } from './tree.ts';

export interface EnsemblePlan {
  readonly size: 1 | 3 | 5;
  readonly tickMs: number;
  /** In ticks: how long servers go on without hearing of each other. */
  readonly syncLimit: number;
  readonly latencyMs: number;
  /** Pings are answered even while a write of the same session waits for the quorum. */
  readonly pingsPass: boolean;
  /** Of each server's own clock. */
  readonly rates: readonly number[];
}

export type Request =
  | { readonly kind: 'ping' }
  | { readonly kind: 'get'; readonly path: string; readonly watch: boolean }
  | { readonly kind: 'exists'; readonly path: string; readonly watch: boolean }
  | { readonly kind: 'children'; readonly path: string; readonly watch: boolean }
  | { readonly kind: 'sync' }
  | { readonly kind: 'write'; readonly operations: readonly Operation[]; readonly isMulti: boolean }
  | {
      readonly kind: 'set-watches';
      readonly zxid: bigint;
      readonly watches: readonly (readonly [WatchKind, string])[];
    }
  | { readonly kind: 'close' };

export type WatchKind = 'data' | 'exist' | 'child';

/** The answer of a server to one request. */
export type Answer =
  | { readonly outcome: 'ok'; readonly results: readonly Result[] }
  | { readonly outcome: 'refused'; readonly index: number; readonly code: Code }
  | { readonly outcome: 'session'; readonly code: 'SESSION_EXPIRED' | 'SESSION_MOVED' };

/** A request that goes to the leader, and what is to be done with its answer. */
interface Forwarded {
  readonly origin: Server;
  readonly session: bigint;
  readonly what:
    | { readonly kind: 'write'; readonly operations: readonly Operation[] }
    | { readonly kind: 'sync' }
    | { readonly kind: 'revalidate' }
    | { readonly kind: 'begin'; readonly timeoutMs: number; readonly by: string }
    | { readonly kind: 'end' };
  readonly answered: (answer: Answer, zxid: bigint) => void;
  /** When the leader looked at it, its session was attached to another server already. */
  readonly hasMoved?: boolean;
}

interface Tracked {
  readonly timeoutMs: number;
  /** The server it is attached to, if this leader has heard of one. */
  owner: Server | undefined;
  deadlineMs: number;
}

/** The clocks of servers show this at the beginning. */
const startedAtUnixMs = 1_700_000_000_000;

const ok: Answer = { outcome: 'ok', results: [] };

/** One leader's time in office. */
class Leadership {
  readonly ensemble: Ensemble;
  readonly server: Server;
  readonly sessions: Map<bigint, Tracked> = new Map();
  readonly heardOf: Map<Server, number> = new Map();
  /** Requests that wait for a quorum. */
  limbo: Forwarded[] = [];
  isOver = false;

  constructor(ensemble: Ensemble, server: Server) {
    this.ensemble = ensemble;
    this.server = server;
    for (const [session, timeoutMs] of ensemble.sessions) this.track(session, timeoutMs);
  }

  get hasQuorum(): boolean {
    if (!this.server.isRunning || this.isOver) return false;
    const { servers, majority } = this.ensemble;
    const following = servers.filter(
      (server) => server.leadership === this && server.reaches(this.server),
    );
    return following.length >= majority;
  }

  track(session: bigint, timeoutMs: number): void {
    this.sessions.set(session, { timeoutMs, owner: undefined, deadlineMs: 0 });
    this.touch(session);
  }

  touch(session: bigint): void {
    const tracked = this.sessions.get(session);
    if (tracked === undefined) return;
    const { tickMs } = this.ensemble.plan;
    // Sessions expire in rounds of a tick.
    tracked.deadlineMs = Math.ceil((this.server.clockMs + tracked.timeoutMs) / tickMs) * tickMs;
  }

  process(request: Forwarded): void {
    if (this.isOver || !this.server.isUp) return;
    if (this.server.isFrozen) {
      this.server.later(() => this.process(request));
      return;
    }
    const { kind } = request.what;
    // Neither of these is committed: a leader that has lost its quorum answers them like any other.
    if (kind === 'revalidate') {
      this.#revalidate(request);
      return;
    }
    if (kind === 'sync' && this.limbo.length === 0) {
      request.origin.enqueue({ done: () => request.answered(ok, request.origin.zxid) });
      return;
    }
    if (!this.hasQuorum || this.limbo.length > 0) {
      this.limbo.push({ ...request, hasMoved: this.#hasMoved(request) });
    } else this.execute(request);
  }

  /** True when the session is attached to another server: no proposal is made of its request. */
  #hasMoved({ origin, session }: Forwarded): boolean {
    const owner = this.sessions.get(session)?.owner;
    return owner !== undefined && owner !== origin;
  }

  flush(): void {
    while (this.limbo.length > 0 && this.hasQuorum) this.execute(this.limbo.shift() as Forwarded);
  }

  execute({ origin, session, what, answered }: Forwarded): void {
    const { ensemble } = this;
    const answer = (said: Answer, transaction?: Transaction) => {
      const zxid = transaction?.zxid ?? ensemble.zxid;
      origin.enqueue({ done: () => answered(said, zxid) });
    };
    if (what.kind === 'begin') {
      const id = ensemble.newSession(what.by);
      this.sessions.set(id, { timeoutMs: what.timeoutMs, owner: origin, deadlineMs: 0 });
      this.touch(id);
      const transaction = ensemble.commit(
        { zxid: ensemble.nextZxid, changes: new Map(), events: [], begins: id },
        id,
        what.timeoutMs,
      );
      origin.enqueue({ done: () => answered(ok, transaction.zxid), session: id });
      return;
    }
    if (what.kind === 'sync') {
      answer(ok);
      return;
    }
    if (what.kind === 'revalidate') {
      this.#revalidate({ origin, session, what, answered });
      return;
    }
    const tracked = this.sessions.get(session);
    if (tracked === undefined) {
      answer({ outcome: 'session', code: 'SESSION_EXPIRED' });
      return;
    }
    tracked.owner ??= origin;
    if (tracked.owner !== origin) {
      ensemble.onRefusedMoved();
      answer({ outcome: 'session', code: 'SESSION_MOVED' });
      return;
    }
    if (what.kind === 'end') {
      const transaction = this.end(session);
      answer(ok, transaction);
      return;
    }
    const prepared = ensemble.prepare(what.operations, session);
    if (prepared.outcome === 'refused') {
      answer(prepared);
      return;
    }
    ensemble.onOperations(what.operations, session, prepared.results);
    const transaction = ensemble.commit(prepared.transaction, session);
    answer({ outcome: 'ok', results: prepared.results }, transaction);
  }

  end(session: bigint): Transaction {
    this.sessions.delete(session);
    return this.ensemble.commit(
      this.ensemble.tree.prepareEnd(session, this.ensemble.nextZxid),
      session,
    );
  }

  expire(): void {
    for (const [session, { deadlineMs }] of this.sessions) {
      if (deadlineMs > this.server.clockMs) continue;
      if (!this.hasQuorum) return;
      this.ensemble.onExpired(session);
      this.end(session);
    }
  }

  #revalidate({ origin, session, answered }: Forwarded): void {
    const tracked = this.sessions.get(session);
    if (tracked !== undefined) {
      tracked.owner = origin;
      this.touch(session);
    }
    const answer: Answer =
      tracked === undefined ? { outcome: 'session', code: 'SESSION_EXPIRED' } : ok;
    origin.enqueue({ done: () => answered(answer, origin.zxid) });
  }
}

interface Entry {
  readonly transaction?: Transaction;
  /** After everything before it was applied. */
  readonly done?: () => void;
  readonly session?: bigint;
}

export class Server {
  readonly name: string;
  readonly rate: number;
  readonly ensemble: Ensemble;
  tree: Tree = new Tree();
  zxid = 0n;
  isUp = true;
  isFrozen = false;
  /** From all other servers; clients reach it. */
  isIsolated = false;
  /** Applies what it is told so much later. */
  lagMs = 0;
  leadership: Leadership | undefined;
  contactMs = 0;
  /** How long it goes on without hearing of its leader, or of enough followers. */
  limitMs: number;
  readonly connections: Set<Connection> = new Set();
  readonly #world: World;
  readonly #random: Random;
  readonly touched: Set<bigint> = new Set();
  #later: (() => void)[] = [];
  /** From the leader: not yet applied. */
  #inbox: (Entry & { readonly atMs: number })[] = [];
  #lastInMs = 0;
  /** To the leader: not yet there. */
  #outbox: { readonly request: Forwarded; readonly atMs: number }[] = [];
  #lastOutMs = 0;

  constructor(ensemble: Ensemble, name: string, rate: number, world: World, random: Random) {
    this.ensemble = ensemble;
    this.name = name;
    this.rate = rate;
    this.#world = world;
    this.#random = random;
    const { tickMs, syncLimit } = ensemble.plan;
    this.limitMs = tickMs * syncLimit * random.between(0.6, 1);
  }

  get isRunning(): boolean {
    return this.isUp && !this.isFrozen;
  }

  get clockMs(): number {
    return this.#world.nowMs * this.rate;
  }

  get isServing(): boolean {
    return this.isUp && this.leadership !== undefined;
  }

  reaches(other: Server): boolean {
    if (this === other) return this.isRunning;
    return this.isRunning && other.isRunning && !this.isIsolated && !other.isIsolated;
  }

  later(what: () => void): void {
    this.#later.push(what);
  }

  // --- what clients send ---

  accept(connection: Connection, session: bigint | undefined, zxid: bigint): void {
    if (!this.isUp) {
      connection.closeByServer();
      return;
    }
    if (this.isFrozen) {
      this.later(() => this.accept(connection, session, zxid));
      return;
    }
    const { leadership } = this;
    // A server that is behind what the client has seen takes it no more than one without a leader.
    if (leadership === undefined || zxid > this.zxid) {
      connection.closeByServer();
      return;
    }
    this.connections.add(connection);
    const what =
      session === undefined
        ? ({ kind: 'begin', timeoutMs: connection.timeoutMs, by: connection.clientName } as const)
        : ({ kind: 'revalidate' } as const);
    this.#forward({
      origin: this,
      session: session ?? 0n,
      what,
      answered: (answer) => {
        if (answer.outcome !== 'ok') {
          connection.welcome(undefined);
          connection.closeByServer();
          return;
        }
        const id = session ?? this.#begun;
        for (const other of this.connections) {
          if (other !== connection && other.session === id) other.closeByServer();
        }
        connection.welcome(id);
      },
    });
  }
  /** The session that was begun last for a client of this server. */
  #begun = 0n;

  receive(connection: Connection, request: Request, reply: (answer: Answer) => void): void {
    if (!this.isUp || !this.connections.has(connection)) return;
    if (this.isFrozen) {
      this.later(() => this.receive(connection, request, reply));
      return;
    }
    if (this.leadership === undefined) return;
    if (this.leadership.server === this) this.leadership.touch(connection.session);
    else this.touched.add(connection.session);
    if (request.kind === 'ping' && this.ensemble.plan.pingsPass) {
      reply(ok);
      return;
    }
    connection.waiting.push({ request, reply });
    this.#work(connection);
  }

  /** One session's requests are answered in order: a write that waits holds up what comes after. */
  #work(connection: Connection): void {
    while (!connection.isBusy && connection.waiting.length > 0) {
      const { request, reply } = connection.waiting.shift() as Connection['waiting'][number];
      this.#handle(connection, request, reply);
    }
  }

  #handle(connection: Connection, request: Request, reply: (answer: Answer) => void): void {
    const forward = (what: Forwarded['what']) => {
      connection.isBusy = true;
      this.#forward({
        origin: this,
        session: connection.session,
        what,
        answered: (answer) => {
          connection.isBusy = false;
          if (!this.connections.has(connection)) return;
          // As servers of 3.8 do it: a write of a session that has moved ends the connection.
          const hasMoved = answer.outcome === 'session' && answer.code === 'SESSION_MOVED';
          if (!hasMoved) reply(answer);
          if (what.kind === 'end' || hasMoved) connection.closeByServer();
          else this.#work(connection);
        },
      });
    };
    switch (request.kind) {
      case 'ping':
        reply(ok);
        return;
      case 'write':
        forward({ kind: 'write', operations: request.operations });
        return;
      case 'sync':
        forward({ kind: 'sync' });
        return;
      case 'close':
        forward({ kind: 'end' });
        return;
      case 'set-watches':
        for (const [kind, path] of request.watches) {
          this.#restoreWatch(connection, kind, path, request.zxid);
        }
        reply(ok);
        return;
      case 'get':
      case 'exists':
      case 'children': {
        const { kind, path } = request;
        const node = this.tree.get(path);
        if (request.watch) {
          if (kind === 'children') {
            if (node !== undefined) connection.watches.add(`child ${path}`);
          } else if (node !== undefined) connection.watches.add(`data ${path}`);
          else if (kind === 'exists') connection.watches.add(`exist ${path}`);
        }
        const results = node === undefined ? [] : [{ type: 'check' as const, path, node }];
        reply({ outcome: 'ok', results });
        return;
      }
      default:
        request satisfies never;
        return;
    }
  }

  /** Tells at once what has happened since `zxid`, and watches from now on. */
  #restoreWatch(connection: Connection, kind: WatchKind, path: string, zxid: bigint): void {
    const node = this.tree.get(path);
    const tell = (type: 'created' | 'deleted' | 'changed' | 'children-changed') =>
      connection.tell({ type, path });
    if (kind === 'exist') {
      if (node !== undefined) tell('created');
      else connection.watches.add(`exist ${path}`);
    } else if (node === undefined) tell('deleted');
    else if (kind === 'data' && node.mzxid > zxid) tell('changed');
    else if (kind === 'child' && node.pzxid > zxid) tell('children-changed');
    else connection.watches.add(`${kind} ${path}`);
  }

  // --- to and from the leader ---

  #forward(request: Forwarded): void {
    const { leadership } = this;
    if (leadership === undefined) return;
    if (leadership.server === this) {
      leadership.process(request);
      return;
    }
    const atMs = Math.max(this.#lastOutMs, this.#world.nowMs + this.#delayMs());
    this.#lastOutMs = atMs;
    this.#outbox.push({ request, atMs });
    this.#world.at(atMs, () => this.drain());
  }

  enqueue(entry: Entry): void {
    const { leadership } = this;
    if (leadership === undefined) return;
    const isLeader = leadership.server === this;
    const delayMs = isLeader ? 0 : this.#delayMs() + this.lagMs * this.#random.next();
    const atMs = Math.max(this.#lastInMs, this.#world.nowMs + delayMs);
    this.#lastInMs = atMs;
    this.#inbox.push({ ...entry, atMs });
    if (isLeader) this.drain();
    else this.#world.at(atMs, () => this.drain());
  }

  /** Whatever has arrived, if the way is open. */
  drain(): false {
    const { leadership } = this;
    while (leadership !== undefined && this.leadership === leadership && this.isRunning) {
      if (!this.reaches(leadership.server)) break;
      const { nowMs } = this.#world;
      const [entry] = this.#inbox;
      const [out] = this.#outbox;
      if (entry !== undefined && entry.atMs <= nowMs) {
        this.#inbox.shift();
        this.#apply(entry);
      } else if (out !== undefined && out.atMs <= nowMs) {
        this.#outbox.shift();
        leadership.process(out.request);
      } else break;
    }
    return false;
  }

  #apply({ transaction, done, session }: Entry): void {
    if (session !== undefined) this.#begun = session;
    if (transaction !== undefined) {
      this.tree.apply(transaction);
      this.zxid = transaction.zxid;
      for (const { type, path } of transaction.events) {
        for (const connection of this.connections) connection.notice(type, path);
      }
      if (transaction.ends !== undefined) {
        for (const connection of [...this.connections]) {
          if (connection.session !== transaction.ends || connection.isClosing) continue;
          // Not at once: what was on its way to the leader may still be refused by it.
          this.#world.at(this.#world.nowMs + this.#delayMs(), () => {
            if (!connection.isClosing) connection.closeByServer();
            return false;
          });
        }
      }
    }
    done?.();
  }

  #delayMs(): number {
    return this.ensemble.plan.latencyMs * (0.2 + this.#random.exponential(0.8));
  }

  // --- its place in the ensemble ---

  /** It has no leader any more, and drops its clients. */
  leave(): void {
    const { leadership } = this;
    if (leadership?.server === this) leadership.isOver = true;
    this.leadership = undefined;
    this.#inbox = [];
    this.#outbox = [];
    this.touched.clear();
    for (const connection of [...this.connections]) connection.closeByServer();
    this.connections.clear();
  }

  follow(leadership: Leadership): void {
    this.leadership = leadership;
    this.contactMs = this.#world.nowMs;
    this.tree = this.ensemble.tree.copy();
    this.zxid = this.ensemble.zxid;
  }

  crash(): void {
    this.isUp = false;
    this.isFrozen = false;
    this.#later = [];
    this.leave();
  }

  thaw(): void {
    if (!this.isFrozen) return;
    this.isFrozen = false;
    // Its own timers and what waits in its sockets: either may come first.
    if (this.leadership?.server === this && this.#random.chance(0.5)) this.leadership.expire();
    for (const run of this.#later.splice(0)) run();
    this.drain();
  }
}

export class Ensemble {
  readonly plan: EnsemblePlan;
  readonly servers: readonly Server[];
  /** The committed tree. */
  readonly tree: Tree = new Tree();
  readonly sessions: Map<bigint, number> = new Map();
  /** Whose session it is. */
  readonly clients: Map<bigint, string> = new Map();
  zxid = 1n;
  leadership: Leadership;
  /** Told of every transaction, before any server applies it. */
  onCommit: (transaction: Transaction, session: bigint) => void = () => {};
  onOperations: (
    operations: readonly Operation[],
    session: bigint,
    results: readonly Result[],
  ) => void = () => {};
  onExpired: (session: bigint) => void = () => {};
  onElected: () => void = () => {};
  onRefusedMoved: () => void = () => {};
  readonly #world: World;
  readonly #random: Random;
  #epoch = 1n;
  #lastSession = 0x100000n;
  #electAtMs: number | undefined;

  constructor(world: World, random: Random, plan: EnsemblePlan) {
    this.#world = world;
    this.#random = random;
    this.plan = plan;
    this.servers = Array.from(
      { length: plan.size },
      (_, index) => new Server(this, `s${index + 1}`, plan.rates[index] ?? 1, world, random),
    );
    this.leadership = new Leadership(this, this.#random.pick(this.servers));
    for (const server of this.servers) server.follow(this.leadership);
    this.#beatLater();
  }

  get majority(): number {
    return Math.floor(this.plan.size / 2) + 1;
  }

  get nextZxid(): bigint {
    return this.zxid + 1n;
  }

  newSession(client: string): bigint {
    this.#lastSession += 1n;
    this.clients.set(this.#lastSession, client);
    return this.#lastSession;
  }

  prepare(operations: readonly Operation[], session: bigint): Prepared {
    const unixMs = startedAtUnixMs + Math.floor(this.#world.nowMs);
    return this.tree.prepare(operations, session, this.nextZxid, unixMs);
  }

  commit(transaction: Transaction, session: bigint, timeoutMs = 0): Transaction {
    this.zxid = transaction.zxid;
    this.tree.apply(transaction);
    if (transaction.begins !== undefined) this.sessions.set(transaction.begins, timeoutMs);
    if (transaction.ends !== undefined) this.sessions.delete(transaction.ends);
    this.onCommit(transaction, session);
    for (const server of this.servers) {
      if (server.leadership === this.leadership) server.enqueue({ transaction });
    }
    return transaction;
  }

  /** Somebody with a tool of their own changes something. @returns false without a quorum */
  byHand(operations: readonly Operation[]): boolean {
    if (!this.leadership.hasQuorum || this.leadership.limbo.length > 0) return false;
    const prepared = this.prepare(operations, 0n);
    if (prepared.outcome === 'refused') return false;
    this.commit(prepared.transaction, 0n);
    return true;
  }

  /** Somebody ends a session, as another client that knows its password can. */
  endSession(session: bigint): boolean {
    if (!this.leadership.hasQuorum || !this.leadership.sessions.has(session)) return false;
    this.onExpired(session);
    this.leadership.end(session);
    return true;
  }

  #beatLater(): void {
    const everyMs = (this.plan.tickMs / 2) * this.#random.between(0.9, 1.1);
    this.#world.at(this.#world.nowMs + everyMs, () => {
      this.#beat();
      this.#beatLater();
      return false;
    });
  }

  /** Twice in a tick: leaders ping their followers, and everybody notices who is gone. */
  #beat(): void {
    const { nowMs } = this.#world;
    for (const server of this.servers) {
      const { leadership } = server;
      if (leadership === undefined || leadership.server === server) continue;
      if (!server.isRunning) continue;
      if (nowMs - server.contactMs > server.limitMs) {
        server.leave();
        continue;
      }
      if (server.reaches(leadership.server) && !leadership.isOver) {
        server.drain();
        server.contactMs = nowMs;
        leadership.heardOf.set(server, nowMs);
        // The leader hears of sessions only by the requests that clients have sent since the last
        // ping.
        for (const session of server.touched) leadership.touch(session);
        server.touched.clear();
      }
    }
    for (const server of this.servers) {
      const { leadership } = server;
      if (leadership === undefined || !server.isRunning) continue;
      if (leadership.server === server) {
        const heard = [...leadership.heardOf].filter(
          ([other, atMs]) => other.leadership === leadership && nowMs - atMs <= server.limitMs,
        );
        const isYoung = nowMs - server.contactMs <= server.limitMs;
        if (heard.length + 1 < this.majority && !isYoung) server.leave();
        else leadership.flush();
      } else if (leadership.isOver || !leadership.server.isUp) {
        server.leave();
      }
    }
    this.leadership.expire();
    this.#gather();
  }

  /** Servers without a leader find one. */
  #gather(): void {
    const { nowMs } = this.#world;
    const looking = this.servers.filter(
      (server) => server.isRunning && server.leadership === undefined && !server.isIsolated,
    );
    const { leadership } = this;
    const isLed = leadership.hasQuorum;
    for (const server of looking) {
      if (!isLed || !server.reaches(leadership.server)) continue;
      if (this.#random.chance(0.5)) server.follow(leadership);
    }
    if (isLed) {
      this.#electAtMs = undefined;
      return;
    }
    const alone = this.servers.filter((each) => each.isRunning && each.leadership === undefined);
    const group = this.plan.size === 1 ? alone : looking;
    if (group.length < this.majority) return;
    // The old leader may still be in office, but it cannot commit any more.
    this.#electAtMs ??= nowMs + this.plan.tickMs * this.#random.between(0, 1.5);
    if (nowMs < this.#electAtMs) return;
    this.#electAtMs = undefined;
    this.#elect(group);
  }

  #elect(group: readonly Server[]): void {
    const before = this.leadership;
    this.#epoch += 1n;
    this.zxid = (this.#epoch << 32n) | 1n;
    const server = this.#random.pick(group);
    this.leadership = new Leadership(this, server);
    for (const each of group) each.follow(this.leadership);
    // Proposals that the old leader had made in vain may have reached one of them, up to some
    // point.
    if (this.#random.chance(0.5)) {
      const most = before.limbo.length;
      for (const request of before.limbo.splice(0, this.#random.below(most + 1))) {
        if (request.hasMoved !== true) {
          this.leadership.execute({ ...request, answered: () => {} });
        }
      }
    }
    before.limbo = [];
    this.onElected();
  }
}
