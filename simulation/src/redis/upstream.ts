import type { Dataset } from './dataset.ts';
import type { Rdb } from './disk.ts';
import type { Connecting } from './machine.ts';
import type { Message } from './messages.ts';
import type { Reply } from './reply.ts';
import { ErrorReply } from './reply.ts';
import type { Server } from './server.ts';
import type { Socket } from './socket.ts';
import type { Entry } from './stream.ts';

/** `repl_state` of a replica, with all states of the handshake as one. */
export type UpstreamState = 'connect' | 'connecting' | 'handshake' | 'transfer' | 'connected';

/** Up to where in which history a replica has applied what it was sent. */
export interface Place {
  replId: string;
  offset: number;
}

type Step = 'ping' | 'auth' | 'port' | 'capa' | 'psync' | 'sync';

/** Such entries change nothing, and no pause holds them up. */
const harmless: ReadonlySet<string> = new Set(['PING', 'REPLCONF', 'SELECT']);

/** The primary of a server, as its replica sees it: the other half of `replication.c`. */
export class Upstream {
  readonly #server: Server;
  host: string;
  port: number;
  state: UpstreamState = 'connect';
  /** While connected (`server.master`). */
  master: Place | undefined;
  /** From before the connection was lost, to go on from (`server.cached_master`). */
  cached: Place | undefined;
  lastHeardSeconds = 0;
  /** Since when the link is down, in seconds; 0 when it never was up. */
  downSinceSeconds = 0;
  #connecting: Connecting | undefined;
  #socket: Socket<Message> | undefined;
  #expected: Step[] = [];
  #lastHeardOfCopySeconds = 0;
  /** Of the copy that was announced. */
  #announced: Place = { replId: '', offset: -1 };
  /** A copy is read into memory as it comes, and not first into a file. */
  #readsCopyAtOnce = false;
  /** Messages that came while a copy is loaded; read after it. */
  #unread: (Message | 'end')[] | undefined;
  /** All of a copy, while it is loaded. */
  copy: Dataset | undefined;
  /** How many copies it has begun to load. */
  loads = 0;
  /** The pause of writes holds up the stream, too. */
  #postponed: Entry[] = [];

  constructor(server: Server, host: string, port: number) {
    this.#server = server;
    this.host = host;
    this.port = port;
  }

  get socket(): Socket<Message> | undefined {
    return this.#socket;
  }

  get isConnected(): boolean {
    return this.state === 'connected';
  }

  /** The `slave_repl_offset` of INFO. */
  get offset(): number {
    return this.master?.offset ?? this.cached?.offset ?? 1;
  }

  /** A pause of writes holds up what the primary sends. */
  get isHeldUp(): boolean {
    return this.#postponed.length > 0;
  }

  get readOffset(): number {
    return this.offset + this.#postponed.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** `connectWithMaster` */
  connect(): void {
    this.state = 'connecting';
    this.#lastHeardOfCopySeconds = this.#server.seconds;
    this.#connecting = this.#server.machine.connect(
      `${this.host}:${this.port}`,
      this.#server.loop.urgent,
      (socket) => this.#shakeHands(socket),
      () => {
        this.#connecting = undefined;
        this.state = 'connect';
      },
    );
  }

  /** It is to follow another one, or nobody: what was reached is kept (`freeClient` of the primary). */
  letGo(): void {
    if (this.master !== undefined) this.#loseMaster(false);
  }

  /** `cancelReplicationHandshake`. @returns whether there was one */
  cancel(reconnect: boolean): boolean {
    if (this.state !== 'connecting' && this.state !== 'handshake' && this.state !== 'transfer') {
      return false;
    }
    this.#disconnect();
    this.state = 'connect';
    if (reconnect) this.connect();
    return true;
  }

  /** Once a second (`replicationCron`). */
  tick(): void {
    const { seconds, settings } = this.#server;
    const timeout = settings.count('repl-timeout');
    if (this.state === 'connected') {
      if (seconds - this.lastHeardSeconds > timeout) this.#loseMaster(true);
    } else if (this.state !== 'connect' && seconds - this.#lastHeardOfCopySeconds > timeout) {
      this.cancel(true);
    }
    if (this.state === 'connect') this.connect();
    this.acknowledge();
  }

  acknowledge(): void {
    if (this.master !== undefined && this.#unread === undefined) {
      this.#send('REPLCONF', 'ACK', `${this.master.offset}`);
    }
  }

  /** Its connection is closed by somebody here. @returns whether there was one */
  drop(): boolean {
    if (this.master === undefined) return false;
    this.#loseMaster(true);
    return true;
  }

  /** The process ends. */
  giveUp(): void {
    this.#connecting?.giveUp();
  }

  /** Writes are not paused any more. */
  resume(): void {
    while (!this.#server.pausesWrites && this.#postponed.length > 0) {
      this.#apply(this.#postponed.shift() as Entry);
    }
  }

  #shakeHands(socket: Socket<Message>): void {
    this.#connecting = undefined;
    this.#socket = socket;
    this.state = 'handshake';
    socket.handlers = {
      message: (message) => this.#read(message),
      end: () => this.#read('end'),
    };
    this.#expected = ['ping'];
    this.#send('PING');
  }

  #read(message: Message | 'end'): void {
    if (this.#unread !== undefined) {
      this.#unread.push(message);
      return;
    }
    if (message === 'end') {
      this.#ended();
      return;
    }
    this.#lastHeardOfCopySeconds = this.#server.seconds;
    if (this.state === 'handshake' || message.kind === 'reply') this.#readHandshake(message);
    else if (this.state === 'transfer') this.#readCopy(message);
    else if (this.state === 'connected') this.#readStream(message);
  }

  #ended(): void {
    if (this.state === 'connected') {
      this.#loseMaster(true);
      return;
    }
    const isReading = this.state === 'transfer' && this.#server.loading !== undefined;
    if (isReading) {
      this.#copyFailed();
      return;
    }
    if (this.state === 'transfer') this.cancel(true);
    else this.#fail();
  }

  #readHandshake(message: Message): void {
    if (message.kind === 'reply') {
      this.#readReply(message.reply);
      return;
    }
    if (message.kind === 'full-resync') {
      this.#expected = [];
      this.#announced = { replId: message.replId, offset: message.offset };
      this.state = 'transfer';
    }
    if (message.kind === 'continue') this.#goOn(message.replId);
  }

  #readReply(reply: Reply): void {
    const error = reply instanceof ErrorReply ? reply.message : undefined;
    const { settings } = this.#server;
    const step = this.#expected.shift();
    switch (step) {
      case 'ping': {
        if (error !== undefined && !/^(NOAUTH|NOPERM)/.test(error)) {
          this.#fail();
          return;
        }
        const [user, password] = [settings.text('masteruser'), settings.text('masterauth')];
        if (password !== '') {
          this.#expected.push('auth');
          this.#send('AUTH', ...(user === '' ? [] : [user]), password);
        }
        this.#expected.push('port', 'capa');
        this.#send('REPLCONF', 'listening-port', `${this.#server.machine.port}`);
        this.#send('REPLCONF', 'capa', 'eof', 'capa', 'psync2');
        return;
      }
      case 'auth':
        if (error !== undefined) this.#fail();
        return;
      case 'capa': {
        const { cached } = this;
        const asked = cached === undefined ? ['?', '-1'] : [cached.replId, `${cached.offset + 1}`];
        this.#expected.push('psync');
        this.#send('PSYNC', ...asked);
        return;
      }
      case 'psync':
        if (error === undefined || /^(NOMASTERLINK|LOADING)/.test(error)) {
          this.#fail();
          return;
        }
        // Such as NOAUTH: it is taken for a server that does not know PSYNC.
        this.state = 'transfer';
        this.#expected.push('sync');
        this.#send('SYNC');
        return;
      case 'sync':
        this.cancel(true);
        return;
      case 'port':
      case undefined:
        return;
      default:
        step satisfies never;
    }
  }

  /** `+CONTINUE`: what is missing comes next. */
  #goOn(replId: string): void {
    const { history } = this.#server;
    const { cached } = this;
    if (cached === undefined) {
      this.#fail();
      return;
    }
    if (replId !== cached.replId) {
      history.replId2 = cached.replId;
      history.secondOffset = history.offset + 1;
      history.replId = replId;
      cached.replId = replId;
      // Its own replicas are to learn of it.
      this.#server.downstream.disconnect();
    }
    this.master = cached;
    this.cached = undefined;
    this.#isLinked();
    if (this.#server.backlog === undefined) this.#server.createBacklog();
  }

  #isLinked(): void {
    this.state = 'connected';
    this.downSinceSeconds = 0;
    this.lastHeardSeconds = this.#server.seconds;
  }

  /** `readSyncBulkPayload` */
  #readCopy(message: Message): void {
    const server = this.#server;
    if (message.kind === 'copy-begins') {
      const how = server.settings.text('repl-diskless-load');
      this.#readsCopyAtOnce = how === 'swapdb' || (how === 'on-empty-db' && server.data.size === 0);
      if (this.#readsCopyAtOnce) this.#beginLoading(how === 'swapdb');
    }
    if (message.kind !== 'copy-ends') return;
    const { rdb, wasStreamed } = message;
    this.copy = rdb.data;
    if (!this.#readsCopyAtOnce) {
      this.#beginLoading(false);
      server.disk.rdb = rdb;
    }
    // It reads nothing else meanwhile, and does not see the connection end.
    this.#unread = [];
    const loadMs = server.machine.speeds.loadMs(rdb.data.size);
    const finish = () => this.#copyIsLoaded(rdb, wasStreamed);
    if (loadMs > 0) server.after(loadMs, finish);
    else finish();
    server.loop.release();
  }

  /** @param keeps the data of before until all is read: `swapdb` */
  #beginLoading(keeps: boolean): void {
    const server = this.#server;
    this.loads += 1;
    server.aof.stop();
    if (server.children.isSaving) server.children.kill();
    this.#waitForCopy();
    const isSameHistory = keeps && server.history.replId === this.#announced.replId;
    if (!keeps) {
      this.#tellLoss();
      this.#leaveHistory();
      server.data.clear();
    }
    server.loading = isSameHistory ? 'beside' : 'only';
  }

  /**
   * A copy that is read as it comes is waited for. The server looks at other things after every 2
   * MB of it, and at nothing while the copy does not go on. Half of them go on.
   */
  #waitForCopy(): void {
    const { loop, machine, settings } = this.#server;
    if (!this.#readsCopyAtOnce || machine.scheduler.random() < 0.5) return;
    loop.hold();
    const socket = this.#socket;
    machine.scheduler.after(1_000 * settings.count('repl-timeout'), () =>
      loop.urgent.read(() => {
        const stillWaits = this.#socket === socket && this.state === 'transfer';
        if (stillWaits && this.#unread === undefined) this.#copyFailed();
      }),
    );
  }

  #tellLoss(): void {
    const { data, machine } = this.#server;
    if (data.size > 0) machine.watcher?.empties(data, `${this.host}:${this.port}`);
  }

  /** `replicationAttachToNewMaster` */
  #leaveHistory(): void {
    this.cached = undefined;
    this.#server.downstream.disconnect();
    this.#server.backlog = undefined;
  }

  #copyFailed(): void {
    const server = this.#server;
    server.loading = undefined;
    const keeps = server.settings.text('repl-diskless-load') === 'swapdb';
    if (!keeps) {
      this.#tellLoss();
      server.data.clear();
    }
    this.cancel(true);
    server.loop.release();
  }

  #copyIsLoaded(rdb: Rdb, wasStreamed: boolean): void {
    const server = this.#server;
    const { history, settings } = server;
    const removesFile = settings.isOn('rdb-del-sync-files') && !settings.keepsData;
    if (!this.#readsCopyAtOnce && removesFile) server.disk.rdb = undefined;
    if (this.#readsCopyAtOnce && settings.text('repl-diskless-load') === 'swapdb') {
      this.#leaveHistory();
    }
    this.#tellLoss();
    server.data = rdb.data.copy();
    this.copy = undefined;
    server.loading = undefined;
    // No file was saved by it, so one is due.
    if (this.#readsCopyAtOnce) server.dirty += 1;
    this.master = { ...this.#announced };
    this.#isLinked();
    history.replId = this.#announced.replId;
    history.offset = this.#announced.offset;
    history.forget();
    if (server.backlog === undefined) server.createBacklog();
    const unread = this.#unread ?? [];
    this.#unread = undefined;
    if (wasStreamed) this.acknowledge();
    if (settings.isOn('appendonly')) server.aof.start();
    for (const message of unread) this.#read(message);
  }

  #readStream(message: Message): void {
    this.lastHeardSeconds = this.#server.seconds;
    if (message.kind !== 'entry') return;
    const { entry } = message;
    const waits =
      this.#postponed.length > 0 ||
      (this.#server.pausesWrites && entry.commands.some(([name]) => !isHarmless(name)));
    if (waits) this.#postponed.push(entry);
    else this.#apply(entry);
  }

  #apply(entry: Entry): void {
    const { master } = this;
    if (master === undefined) return;
    // Answered before it is counted itself.
    if (entry.commands.some(([, second]) => second === 'GETACK')) this.acknowledge();
    this.#server.applyFromPrimary(entry.commands);
    master.offset += entry.bytes;
    this.#server.downstream.feed(entry, [entry.bytes]);
  }

  /** @param reconnect not when it is to follow another one */
  #loseMaster(reconnect: boolean): void {
    const { master } = this;
    if (master === undefined) return;
    this.#disconnect();
    this.master = undefined;
    // A primary that a pause holds up is not kept: `freeClient` does not cache a client that is blocked.
    if (this.#postponed.length === 0) this.cached = master;
    this.#postponed = [];
    this.state = 'connect';
    this.downSinceSeconds = this.#server.seconds;
    if (reconnect) this.connect();
  }

  #fail(): void {
    this.#disconnect();
    this.state = 'connect';
  }

  #disconnect(): void {
    this.#connecting?.giveUp();
    this.#connecting = undefined;
    if (this.#socket !== undefined) this.#server.children.close(this.#socket);
    this.#socket = undefined;
    this.#expected = [];
    this.#unread = undefined;
    this.copy = undefined;
  }

  #send(...parts: string[]): void {
    this.#socket?.send({ kind: 'command', parts });
  }
}

function isHarmless(name: string | undefined): boolean {
  return name !== undefined && harmless.has(name.toUpperCase());
}
