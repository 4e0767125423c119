import { AppendOnlyFile } from './aof.ts';
import { Backlog } from './backlog.ts';
import { boot } from './boot.ts';
import { Children } from './children.ts';
import type { Blocked } from './client.ts';
import { Client } from './client.ts';
import { findCommand } from './commands.ts';
import { Dataset } from './dataset.ts';
import type { Disk, Rdb } from './disk.ts';
import { Downstream } from './downstream.ts';
import { EventLoop } from './event-loop.ts';
import { execute } from './execute.ts';
import { History } from './history.ts';
import type { Machine } from './machine.ts';
import type { Message } from './messages.ts';
import { Pauses } from './pauses.ts';
import type { Reply } from './reply.ts';
import { said } from './reply.ts';
import { randomHexId } from './scheduler.ts';
import { Settings } from './settings.ts';
import { Shutdown } from './shutdown.ts';
import type { Socket } from './socket.ts';
import type { Entry } from './stream.ts';
import { getAckEntry, pingEntry, selectEntry } from './stream.ts';
import { Upstream } from './upstream.ts';

/**
 * - `only`: nearly every command is refused (`LOADING`).
 * - `beside`: the data of before are served meanwhile (`async_loading`).
 */
export type Loading = 'only' | 'beside' | undefined;

/** One process of Redis 7.0, from its start to its end. Names in comments are of its sources. */
export class Server {
  readonly machine: Machine;
  readonly loop: EventLoop;
  readonly runId: string;
  readonly settings: Settings;
  readonly history: History;
  readonly downstream: Downstream;
  readonly aof: AppendOnlyFile;
  readonly children: Children;
  readonly pauses: Pauses;
  readonly shutdown: Shutdown;
  readonly clients: Map<number, Client> = new Map();
  readonly startedSeconds: number;
  data: Dataset = new Dataset();
  backlog: Backlog | undefined;
  upstream: Upstream | undefined;
  loading: Loading;
  /** The replicas were told in which database the stream goes on (`slaveseldb`). */
  streamsDatabase = false;
  /** Changes since the last save. */
  dirty = 0;
  /** How often it has saved. */
  saves = 0;
  lastSaveSeconds: number;
  readonly #accepted = new Set<Socket<Message>>();
  #hasVanished = false;
  #nextClientId = 3;
  #wantsAck = false;
  #loops = 0;

  constructor(machine: Machine) {
    this.machine = machine;
    this.loop = new EventLoop(() => !this.#hasVanished || machine.isThere);
    this.runId = randomHexId(machine.scheduler);
    this.settings = new Settings(machine.configuration);
    this.history = new History(machine.scheduler);
    this.startedSeconds = this.seconds;
    this.lastSaveSeconds = this.seconds;
    this.downstream = new Downstream(this);
    this.aof = new AppendOnlyFile(this);
    this.children = new Children(this);
    this.pauses = new Pauses(this, () => this.#resume());
    this.shutdown = new Shutdown(this);
    const [host, port] = machine.configuration.replicaof?.split(' ') ?? [];
    if (host !== undefined) this.upstream = new Upstream(this, host, Number(port));
    boot(this, () => this.#tick());
  }

  get nowMs(): number {
    return this.machine.scheduler.now();
  }

  /** `server.unixtime` */
  get seconds(): number {
    return Math.floor(this.nowMs / 1_000);
  }

  get disk(): Disk {
    return this.machine.disk;
  }

  /** All connections that it has. */
  get sockets(): readonly Socket<Message>[] {
    const { socket } = this.upstream ?? {};
    return socket === undefined ? [...this.#accepted] : [...this.#accepted, socket];
  }

  get pausesWrites(): boolean {
    return this.pauses.writes;
  }

  // The tasks that run in it, and their times

  after(delayMs: number, run: () => void): void {
    this.machine.scheduler.after(delayMs, () => this.loop.read(run));
  }

  /** SIGKILL. Children that it has forked may work on. */
  kill(): void {
    if (this.loop.isDead) return;
    this.#end(false);
    for (const socket of this.sockets) this.children.close(socket);
    this.children.outlive();
  }

  /** It ends by itself, and its children with it. */
  exit(): void {
    this.#end(false);
    this.children.kill();
    for (const socket of this.sockets) socket.close();
    this.machine.exited();
  }

  /** Its machine is gone: nobody is told. */
  vanish(): void {
    if (this.loop.isDead) return;
    this.#hasVanished = true;
    this.#end(true);
    for (const socket of this.sockets) socket.vanish();
  }

  #end(powerFails: boolean): void {
    this.aof.end(powerFails);
    this.upstream?.giveUp();
    this.loop.end();
  }

  // Connections

  /** The kernel takes a connection. The process learns of it when it runs. */
  accept(socket: Socket<Message>, peer: string): void {
    this.#accepted.add(socket);
    this.loop.read(() => this.#serve(socket, peer));
  }

  #serve(socket: Socket<Message>, peer: string): void {
    const isOpen = this.settings.text('requirepass') === '';
    const client = new Client(this.#nextClientId, socket, peer, isOpen);
    this.#nextClientId += 1;
    this.clients.set(client.id, client);
    socket.handlers = {
      message: (message) => {
        if (message.kind !== 'command') return;
        client.queue.push(message.parts);
        this.#work(client);
      },
      end: () => this.drop(client),
    };
  }

  /** Closes the connection. */
  drop(client: Client): void {
    if (!this.clients.delete(client.id)) return;
    this.children.close(client.socket);
    this.#accepted.delete(client.socket);
    client.queue.length = 0;
    client.blocked = undefined;
    this.downstream.detach(client);
  }

  /** @returns resolves the wait of a client, unless it is over already */
  block(client: Client, blocked: Blocked): (reply: Reply) => void {
    client.blocked = blocked;
    return (reply) => {
      if (client.blocked !== blocked) return;
      client.blocked = undefined;
      client.answer(reply);
      this.#work(client);
    };
  }

  // Data

  /** A change by a client, or by the primary. */
  put(key: string, value: string | undefined): void {
    this.aof.note(key, this.data.put(key, value));
    this.dirty += 1;
  }

  applyFromPrimary(commands: readonly (readonly string[])[]): void {
    for (const parts of commands) {
      findCommand((parts[0] ?? '').toLowerCase())?.apply?.(this, parts);
    }
  }

  /** `replicationFeedSlaves`: a replica passes on what it was sent, and nothing of its own. */
  feed(entry: Entry): void {
    if (this.upstream !== undefined || this.backlog === undefined) return;
    const namesDatabase = entry !== pingEntry && entry !== getAckEntry;
    if (namesDatabase && !this.streamsDatabase) {
      this.streamsDatabase = true;
      this.downstream.feed(selectEntry, selectEntry.pieces);
    }
    this.downstream.feed(entry, entry.pieces);
  }

  createBacklog(): void {
    this.backlog = new Backlog(this.history.offset, this.settings.count('repl-backlog-size'));
  }

  /** The contents of an RDB file of now (`rdbPopulateSaveInfo`). */
  snapshot(): Rdb {
    const { replId, offset } = this.history;
    const isKnown =
      this.upstream === undefined
        ? this.backlog !== undefined
        : this.upstream.master !== undefined || this.upstream.cached !== undefined;
    return { data: this.data.copy(), position: isKnown ? { replId, offset } : undefined };
  }

  /** SAVE, and what a shutdown saves. */
  save(): void {
    this.disk.rdb = this.snapshot();
    this.#saved(this.dirty);
  }

  /** BGSAVE. The file is there when the child has ended. */
  saveInBackground(rdb: Rdb = this.snapshot()): void {
    const { dirty } = this;
    this.children.start({
      kind: 'rdb-file',
      forMs: this.machine.speeds.saveMs(rdb.data.size),
      alone: () => {
        this.disk.rdb = rdb;
      },
      done: () => {
        this.#saved(dirty);
        this.downstream.fileIsReady(rdb);
      },
    });
  }

  // Roles

  /** REPLICAOF host port (`replicationSetMaster`). @param by from where that was ordered */
  follow(host: string, port: number, by: string): void {
    this.machine.watcher?.follows(`${host}:${port}`, by);
    this.upstream?.letGo();
    this.#unblockAll();
    const { upstream } = this;
    if (upstream === undefined) {
      this.upstream = new Upstream(this, host, port);
      const { replId, offset } = this.history;
      this.upstream.cached = { replId, offset };
    } else {
      upstream.host = host;
      upstream.port = port;
      upstream.cancel(false);
    }
    this.upstream?.connect();
  }

  /** REPLICAOF NO ONE (`replicationUnsetMaster`). */
  lead(by: string): void {
    const { upstream } = this;
    if (upstream === undefined) return;
    this.machine.watcher?.leads?.(by);
    upstream.letGo();
    upstream.cancel(false);
    this.upstream = undefined;
    this.history.fork();
    this.downstream.disconnect();
    this.streamsDatabase = false;
    this.downstream.idleSinceSeconds = this.seconds;
    if (this.settings.isOn('appendonly')) this.aof.start();
  }

  // WAIT

  /** All replicas are to report, when the command that wants it is over. */
  wantAcknowledgements(): void {
    this.#wantsAck = true;
  }

  /** A replica has reported, or is gone. */
  acknowledged(): void {
    for (const client of this.clients.values()) {
      const { blocked } = client;
      if (blocked?.by !== 'wait') continue;
      const count = this.downstream.countAcknowledged(blocked.offset);
      if (count < blocked.replicas) continue;
      client.blocked = undefined;
      client.answer(count);
      this.#work(client);
    }
    this.shutdown.goOn();
  }

  // Inside

  /** Once a second (`replicationCron`, and of `serverCron` what matters). */
  #tick(): void {
    this.after(1_000, () => this.#tick());
    if (this.loading !== undefined) return;
    this.upstream?.tick();
    const period = this.settings.count('repl-ping-replica-period');
    if (this.#loops % period === 0 && this.downstream.attached.length > 0) this.feed(pingEntry);
    this.#loops += 1;
    this.downstream.tick();
    this.aof.startRewrite();
    this.#saveNowAndThen();
  }

  #saveNowAndThen(): void {
    if (this.children.current !== undefined) return;
    const isDue = this.settings.savePoints.some(
      ({ seconds, changes }) =>
        this.dirty >= changes && this.seconds - this.lastSaveSeconds > seconds,
    );
    if (isDue) this.saveInBackground();
  }

  #saved(dirty: number): void {
    this.dirty -= dirty;
    this.saves += 1;
    this.lastSaveSeconds = this.seconds;
  }

  #work(client: Client): void {
    while (client.blocked === undefined && this.clients.has(client.id)) {
      const parts = client.queue.shift();
      if (parts === undefined) return;
      execute(this, client, parts);
    }
  }

  /** Unless writes are paused: it would be one (`sendGetackToReplicas`). */
  askForAcknowledgements(): void {
    if (!this.#wantsAck || this.pausesWrites) return;
    this.#wantsAck = false;
    this.feed(getAckEntry);
  }

  /** Writes are not paused any more. */
  #resume(): void {
    const waiting = this.pauses.postponed.splice(0);
    this.upstream?.resume();
    for (const client of waiting) {
      if (client.blocked?.by !== 'pause' || !this.clients.has(client.id)) continue;
      const { parts } = client.blocked;
      client.blocked = undefined;
      execute(this, client, parts);
      this.#work(client);
    }
    this.askForAcknowledgements();
  }

  /** `disconnectAllBlockedClients`: they are told, and sent away. A pause is waited for on. */
  #unblockAll(): void {
    for (const client of [...this.clients.values()]) {
      if (client.blocked === undefined || client.blocked.by === 'pause') continue;
      client.answer(said.unblocked);
      this.drop(client);
    }
  }
}
