import type { Hold } from './backlog.ts';
import type { Child } from './children.ts';
import type { Client } from './client.ts';
import type { Rdb } from './disk.ts';
import type { Message } from './messages.ts';
import { ErrorReply } from './reply.ts';
import type { Server } from './server.ts';
import type { Entry } from './stream.ts';

/**
 * - `wait-start`: a copy for it has not been begun.
 * - `wait-end`: a copy is being written; what comes after it is kept for the replica.
 * - `sending`: the file is on its way.
 * - `online`: it has the copy, and is counted for min-replicas-to-write.
 */
type AttachedState = 'wait-start' | 'wait-end' | 'sending' | 'online';

export interface AttachedReplica {
  readonly client: Client;
  state: AttachedState;
  /** Where the stream goes on behind the copy. */
  startOffset: number;
  ackOffset: number;
  ackSeconds: number;
  readonly askedSeconds: number;
  /** It is online, and is sent nothing before it has reported: see `streamFor`. */
  startsOnAck: boolean;
  pending: Entry[];
  hold: Hold | undefined;
}

/** How soon the process sees that a child has ended: it looks ten times a second. */
const reapMs = 100;
/** The time that a child needs to end after its last byte was taken. */
const childExitMs = 3;

/** The replicas of a server: what `replication.c` does as a primary, for replicas of replicas too. */
export class Downstream {
  readonly #server: Server;
  readonly attached: AttachedReplica[] = [];
  /** When the last one went, in seconds. */
  idleSinceSeconds: number;
  goodCount = 0;
  /** How replicas were served, as INFO counts it. */
  readonly served = { full: 0, partly: 0, notPartly: 0 };
  /** For replicas alone, and to be removed where nothing is kept (`RDBGeneratedByReplication`). */
  #madeFile = false;
  /** A child writes to sockets, and has sent all. */
  #childHasExited = false;

  constructor(server: Server) {
    this.#server = server;
    this.idleSinceSeconds = server.seconds;
  }

  /** PSYNC and SYNC (`syncCommand`). @param asked undefined for SYNC. @returns an error at the most */
  sync(
    client: Client,
    asked: { readonly replId: string; readonly offset: number } | undefined,
  ): ErrorReply | undefined {
    if (client.replica !== undefined) return undefined;
    const server = this.#server;
    if (server.upstream !== undefined && !server.upstream.isConnected) {
      return new ErrorReply("NOMASTERLINK Can't SYNC while not connected with my master");
    }
    if (asked !== undefined && this.#goOn(client, asked)) {
      this.served.partly += 1;
      return undefined;
    }
    if (asked !== undefined && asked.replId !== '?') this.served.notPartly += 1;
    this.served.full += 1;
    const replica = this.#attach(client, 'wait-start');
    if (this.attached.length === 1 && server.backlog === undefined) {
      // Writes before the first replica came are in no offset.
      server.history.begin();
      server.createBacklog();
    }
    this.#begin(replica);
    return undefined;
  }

  /**
   * Adds an entry to the stream.
   * @param pieces as the backlog takes it
   */
  feed(entry: Entry, pieces: readonly number[]): void {
    const { backlog, history } = this.#server;
    if (backlog === undefined) return;
    const keeping = this.attached.filter((replica) => isKept(replica));
    for (const replica of keeping) replica.hold ??= backlog.hold();
    history.offset += entry.bytes;
    backlog.feed(entry, pieces);
    for (const replica of keeping) replica.hold ??= backlog.hold();
    for (const replica of this.attached) {
      if (isKept(replica)) replica.pending.push(entry);
      else if (replica.state === 'online') send(replica, { kind: 'entry', entry });
    }
  }

  /** REPLCONF ACK. */
  acknowledge(client: Client, offset: number): void {
    const { replica } = client;
    if (replica === undefined) return;
    replica.ackOffset = Math.max(replica.ackOffset, offset);
    replica.ackSeconds = this.#server.seconds;
    if (replica.state === 'wait-end' && this.#childHasExited) this.#server.children.end();
    if (replica.startsOnAck && replica.state === 'online') this.#stream(replica);
    this.#server.acknowledged();
  }

  countAcknowledged(offset: number): number {
    return this.attached.filter(({ state, ackOffset }) => state === 'online' && ackOffset >= offset)
      .length;
  }

  /** The connection of one is gone, or is to go. */
  detach(client: Client): void {
    const index = this.attached.findIndex((replica) => replica.client === client);
    const [gone] = index < 0 ? [] : this.attached.splice(index, 1);
    if (gone === undefined) return;
    client.replica = undefined;
    gone.hold?.release();
    if (this.attached.length === 0) this.idleSinceSeconds = this.#server.seconds;
    this.#dropChild(gone);
    this.countGood();
    this.#server.acknowledged();
  }

  /** They are to ask anew (`disconnectSlaves`). */
  disconnect(): void {
    for (const { client } of [...this.attached]) this.#server.drop(client);
  }

  /** Once a second (`replicationCron`). */
  tick(): void {
    const { seconds, settings } = this.#server;
    for (const replica of [...this.attached]) {
      const waits =
        replica.state === 'wait-start' ||
        (replica.state === 'wait-end' && this.#server.children.current?.kind !== 'rdb-stream');
      if (waits) send(replica, { kind: 'newline' });
      const isLate = seconds - replica.ackSeconds > settings.count('repl-timeout');
      if (replica.state === 'online' && isLate) this.#server.drop(replica.client);
    }
    this.#forgetBacklog();
    this.startCopies();
    this.#removeFile();
    this.countGood();
  }

  /** `refreshGoodSlavesCount` */
  countGood(): void {
    const { seconds, settings } = this.#server;
    const maxLag = settings.count('min-replicas-max-lag');
    this.goodCount = this.attached.filter(
      ({ state, ackSeconds }) => state === 'online' && seconds - ackSeconds <= maxLag,
    ).length;
  }

  /** `replicationStartPendingFork` */
  startCopies(): void {
    const { children, seconds, settings } = this.#server;
    if (children.current !== undefined) return;
    const waiting = this.attached.filter(({ state }) => state === 'wait-start');
    if (waiting.length === 0) return;
    const longest = Math.max(...waiting.map(({ askedSeconds }) => seconds - askedSeconds));
    if (
      !settings.isOn('repl-diskless-sync') ||
      longest >= settings.count('repl-diskless-sync-delay')
    ) {
      this.#startCopy();
    }
  }

  /** A file is there that some of them wait for (`updateSlavesWaitingBgsave`). */
  fileIsReady(rdb: Rdb): void {
    const { machine } = this.#server;
    for (const replica of this.attached.filter(({ state }) => state === 'wait-end')) {
      replica.state = 'sending';
      send(replica, { kind: 'copy-begins' });
      this.#server.after(machine.speeds.copyMs(rdb.data.size), () => {
        if (replica.state !== 'sending' || !replica.client.socket.isOpen) return;
        send(replica, { kind: 'copy-ends', rdb, wasStreamed: false });
        this.#putOnline(replica);
        this.#stream(replica);
      });
    }
  }

  /** All was streamed. They report, and then get what was written meanwhile. */
  #streamHasEnded(): void {
    this.#childHasExited = false;
    for (const replica of this.attached.filter(({ state }) => state === 'wait-end')) {
      this.#putOnline(replica);
      replica.startsOnAck = true;
    }
  }

  /** `masterTryPartialResynchronization` */
  #goOn(client: Client, { replId, offset }: { replId: string; offset: number }): boolean {
    const { backlog, history } = this.#server;
    const isOurs =
      replId === history.replId || (replId === history.replId2 && offset <= history.secondOffset);
    if (!isOurs || backlog === undefined || !backlog.has(offset)) return false;
    const replica = this.#attach(client, 'online');
    send(replica, { kind: 'continue', replId: history.replId });
    for (const entry of backlog.from(offset)) send(replica, { kind: 'entry', entry });
    this.countGood();
    return true;
  }

  #attach(client: Client, state: AttachedState): AttachedReplica {
    const { seconds } = this.#server;
    const replica: AttachedReplica = {
      client,
      state,
      startOffset: 0,
      ackOffset: 0,
      ackSeconds: seconds,
      askedSeconds: seconds,
      startsOnAck: false,
      pending: [],
      hold: undefined,
    };
    client.replica = replica;
    this.attached.push(replica);
    return replica;
  }

  #begin(replica: AttachedReplica): void {
    const { children, settings } = this.#server;
    if (children.current?.kind === 'rdb-file') {
      const other = this.attached.find(({ state }) => state === 'wait-end');
      if (other === undefined) return;
      replica.pending = [...other.pending];
      replica.hold = this.#server.backlog?.hold();
      this.#setUp(replica, other.startOffset);
      return;
    }
    const isDelayed =
      settings.isOn('repl-diskless-sync') && settings.count('repl-diskless-sync-delay') > 0;
    if (children.current === undefined && !isDelayed) this.#startCopy();
  }

  /** `startBgsaveForReplication` */
  #startCopy(): void {
    const server = this.#server;
    const rdb = server.snapshot();
    for (const replica of this.attached.filter(({ state }) => state === 'wait-start')) {
      this.#setUp(replica, server.history.offset);
    }
    if (!server.settings.isOn('repl-diskless-sync')) {
      this.#madeFile = server.settings.isOn('rdb-del-sync-files');
      server.saveInBackground(rdb);
      return;
    }
    this.#childHasExited = false;
    for (const replica of this.attached.filter(({ state }) => state === 'wait-end')) {
      send(replica, { kind: 'copy-begins' });
    }
    const { scheduler, speeds } = server.machine;
    const saveMs = speeds.saveMs(rdb.data.size);
    const exitMs = scheduler.random() * childExitMs;
    const child: Child = {
      kind: 'rdb-stream',
      forMs: saveMs + exitMs + scheduler.random() * reapMs,
      done: () => this.#streamHasEnded(),
    };
    server.children.start(child);
    server.after(saveMs, () => {
      if (server.children.current !== child) return;
      for (const replica of this.attached.filter(({ state }) => state === 'wait-end')) {
        send(replica, { kind: 'copy-ends', rdb, wasStreamed: true });
      }
      server.after(exitMs, () => {
        this.#childHasExited = server.children.current === child;
      });
    });
  }

  /** `replicationSetupSlaveForFullResync` */
  #setUp(replica: AttachedReplica, offset: number): void {
    replica.state = 'wait-end';
    replica.startOffset = offset;
    this.#server.streamsDatabase = false;
    const { replId } = this.#server.history;
    send(replica, { kind: 'full-resync', replId, offset });
  }

  #putOnline(replica: AttachedReplica): void {
    replica.state = 'online';
    replica.ackSeconds = this.#server.seconds;
    this.countGood();
  }

  #stream(replica: AttachedReplica): void {
    replica.startsOnAck = false;
    for (const entry of replica.pending) send(replica, { kind: 'entry', entry });
    replica.pending = [];
    replica.hold?.release();
    replica.hold = undefined;
  }

  /** Nobody waits any more for what the child writes (`freeClient` of networking.c). */
  #dropChild({ state }: AttachedReplica): void {
    const { children, settings } = this.#server;
    if (state !== 'wait-end' || this.attached.some((other) => other.state === 'wait-end')) return;
    const isWanted = children.current?.kind === 'rdb-file' && settings.savePoints.length > 0;
    if (children.isSaving && !isWanted) children.kill();
  }

  /** `removeRDBUsedToSyncReplicas` */
  #removeFile(): void {
    const { settings, disk } = this.#server;
    if (!settings.isOn('rdb-del-sync-files')) this.#madeFile = false;
    const isInUse = this.attached.some(({ state }) => state !== 'online');
    if (!this.#madeFile || isInUse || settings.keepsData || disk.rdb === undefined) return;
    this.#madeFile = false;
    disk.rdb = undefined;
  }

  #forgetBacklog(): void {
    const server = this.#server;
    const limit = server.settings.count('repl-backlog-ttl');
    const isIdle = this.attached.length === 0 && server.upstream === undefined;
    if (!isIdle || limit === 0 || server.backlog === undefined) return;
    if (server.seconds - this.idleSinceSeconds <= limit) return;
    // Without a backlog the offset stands still while data change: it must not look like the same story.
    server.history.begin();
    server.backlog = undefined;
  }
}

/** It is sent nothing now, and must not miss it. */
function isKept({ state, startsOnAck }: AttachedReplica): boolean {
  return state === 'wait-end' || state === 'sending' || startsOnAck;
}

function send(replica: AttachedReplica, message: Message): void {
  replica.client.socket.send(message);
}
