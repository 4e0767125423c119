/// <reference lib="esnext.disposable" preserve="true" />

import { checkAcl } from './acl.ts';
import type { CallOptions, Data, VersionOptions } from './arguments.ts';
import {
  checkOptions,
  checkTimeout,
  checkVersion,
  describe,
  namesOf,
  toBytes,
  versionOptions,
} from './arguments.ts';
import { Caller } from './caller.ts';
import { formatHosts } from './connection-string.ts';
import type { Counters } from './counters.ts';
import { Tally } from './counters.ts';
import type { CreateOptions } from './create.ts';
import { checkCreateOptions, createProtected, planCreate, sendCreate } from './create.ts';
import { publish } from './diagnostics.ts';
import { ClosedError, ConnectError, InvalidArgumentError, SessionError } from './errors.ts';
import { EventBuffer } from './event-buffer.ts';
import { follow, followChildren } from './follow.ts';
import type { StoppableIterator } from './iterate.ts';
import { orStopped, stoppable } from './iterate.ts';
import type { MultiReadOperation, MultiReadReply } from './multi-read.ts';
import { multiRead } from './multi-read.ts';
import { findFailure } from './multi-results.ts';
import type { NodeWatch } from './node-watch.ts';
import { watchChildren, watchNode } from './node-watch.ts';
import { onAbort } from './on-abort.ts';
import type { ClientOptions } from './options.ts';
import { connectOptions, resolveOptions, toCredentials } from './options.ts';
import { checkPath } from './paths.ts';
import type { AddWatchOptions } from './persistent-watch.ts';
import { PersistentWatch } from './persistent-watch.ts';
import { opcodes, watcherTypes } from './protocol/constants.ts';
import type { Acl, SetDataRequest } from './protocol/messages.ts';
import type { MultiOperation } from './protocol/multi.ts';
import { requests } from './protocol/requests.ts';
import type { Stat } from './protocol/stat.ts';
import type {
  AclReply,
  ChildrenReply,
  CountReply,
  CreateReply,
  EphemeralsReply,
  IdentitiesReply,
  MaybeStatReply,
  Reply,
  StatReply,
} from './replies.ts';
import { GetReply } from './replies.ts';
import type { AnswerOf, ReplyHandlers } from './session/pending-request.ts';
import { Session } from './session/session.ts';
import type { ExportedSession, SessionInfo, State, StateChange } from './state.ts';
import { Transaction } from './transaction.ts';
import type { DeleteRecursiveOptions, EnsurePathOptions } from './trees.ts';
import { deleteRecursive, ensurePath } from './trees.ts';

/** A node that must exist, and may have to have a version (default -1: any; not undefined). */
export type Confirmed = string | { readonly path: string; readonly version?: number };

const confirmed = namesOf<Exclude<Confirmed, string>>({ path: true, version: true });

/** What `reconfig` changes. Either `members`, or `joining` and `leaving`. */
export interface Reconfiguration {
  /** Servers to add or change, as `server.5=host:2888:3888;2181`. */
  readonly joining?: readonly string[] | undefined;
  /** Ids of servers to remove. */
  readonly leaving?: readonly (string | number)[] | undefined;
  /** The whole new membership. */
  readonly members?: readonly string[] | undefined;
}

/** The options of `reconfig`. */
export interface ReconfigOptions extends CallOptions {
  /** The configuration that must be in force (default -1n: any). Not undefined. */
  readonly configId?: bigint;
}

const reconfiguration = namesOf<Reconfiguration>({ joining: true, leaving: true, members: true });
const reconfigOptions = namesOf<ReconfigOptions>({
  ...{ signal: true, timeoutMs: true, configId: true },
});
const signalOnly = namesOf<{ signal: AbortSignal }>({ signal: true });
const closeOptions = namesOf<{ keepSession: boolean }>({ keepSession: true });

let clients = 0;

/**
 * A client at once; it connects in the background, and calls wait for it.
 * @param url such as `zk://h1:2181,h2:2181/chroot?timeout=10s`; `zks://` is TLS
 * @throws InvalidArgumentError
 */
export function createClient(url: string, options: ClientOptions = {}): ZooKeeper {
  return new ZooKeeper(url, options);
}

/**
 * A client that has a session.
 * @returns rejects ConnectError after `connectTimeoutMs`, AuthError when the credentials are
 *   refused, SessionError when `session` has expired, and with the reason of `signal`
 */
export async function connect(
  url: string,
  options: ClientOptions & { readonly signal?: AbortSignal | undefined } = {},
): Promise<ZooKeeper> {
  checkOptions('connect', options, connectOptions);
  const { signal, ...rest } = options;
  signal?.throwIfAborted();
  return ZooKeeper.connect(url, rest, signal);
}

/** A ZooKeeper client: one session that outlives connections. See `createClient` and `connect`. */
export class ZooKeeper implements AsyncDisposable {
  readonly #number: number;
  readonly #tally: Tally = new Tally();
  readonly #session: Session;
  readonly #caller: Caller;
  readonly #hosts: string;
  readonly #connectTimeoutMs: number;
  readonly #withStat: boolean;
  readonly #listeners: Set<(change: StateChange) => void> = new Set();
  /** Those that are still to be told; the first is being told. */
  readonly #changes: StateChange[] = [];

  constructor(url: string, options: ClientOptions = {}) {
    const resolved = resolveOptions(url, options);
    clients += 1;
    this.#number = clients;
    this.#hosts = formatHosts(resolved.session.hosts);
    this.#connectTimeoutMs = resolved.connectTimeoutMs;
    this.#withStat = resolved.compatibility !== '3.4';
    this.#session = new Session(
      resolved.session,
      resolved.credentials,
      this.#number,
      this.#tally,
      (change) => this.#tell(change),
    );
    this.#caller = new Caller(this.#session, resolved.session.chroot, resolved.session.clock);
  }

  // State ------------------------------------------------------------------------------------------

  /** Judged when it is read: `expired` also if no timer has run since. */
  get state(): State {
    return this.#session.state;
  }

  /** Undefined while there is none. */
  get session(): SessionInfo | undefined {
    return this.#session.info;
  }

  /**
   * The latest transaction seen. No server that is behind it is accepted, and it never goes back:
   * unless the session has expired and all servers turn out to have lost their data.
   */
  get lastZxid(): bigint {
    return this.#session.lastZxid;
  }

  get counters(): Counters {
    const { pipeline, watches } = this.#session;
    const { requests: taken, succeeded, failed } = this.#tally;
    return {
      ...this.#tally,
      outstanding: taken - succeeded - failed,
      queued: pipeline.queued,
      queuedBytes: pipeline.queuedBytes,
      inFlight: pipeline.inFlight,
      watches: watches.size,
    };
  }

  /**
   * Waits until requests can be sent, in a new session if this one expires meanwhile.
   * @returns rejects ConnectError after `timeoutMs` (default: `connectTimeoutMs`), AuthError,
   *   ClosedError, and with the reason of `signal`
   */
  async connected(options: CallOptions = {}): Promise<void> {
    checkOptions('connected', options);
    return this.#waitUntilConnected(options, false);
  }

  /** @internal */
  static async connect(
    url: string,
    options: ClientOptions,
    signal: AbortSignal | undefined,
  ): Promise<ZooKeeper> {
    const client = new ZooKeeper(url, options);
    try {
      await client.#waitUntilConnected({ signal }, options.session !== undefined);
      return client;
    } catch (error) {
      await client.close({ keepSession: true });
      throw error;
    }
  }

  async #waitUntilConnected(options: CallOptions, rejectExpired: boolean): Promise<void> {
    const { signal, timeoutMs = this.#connectTimeoutMs } = options;
    checkTimeout('timeoutMs', timeoutMs);
    signal?.throwIfAborted();
    if (isReady(this.#session.toldState)) return;
    const { clock } = this.#caller;
    await new Promise<void>((resolve, reject) => {
      const finish = (settle: () => void) => {
        stopListening();
        timer.cancel();
        stopWaiting();
        settle();
      };
      const stopWaiting = onAbort(signal, () => finish(() => reject(signal?.reason)));
      const timer = clock.setTimer(() => {
        const { lastError } = this.#session;
        finish(() => reject(new ConnectError(this.#hosts, timeoutMs, lastError)));
      }, timeoutMs);
      const judge = ({ state, error }: { state: State; error?: Error | undefined }) => {
        if (isReady(state)) finish(resolve);
        else if (state === 'closed') finish(() => reject(new ClosedError()));
        else if (state === 'auth-failed') finish(() => reject(error));
        else if (state === 'expired' && rejectExpired) {
          const why = 'the session to attach to has expired';
          finish(() => reject(new SessionError('SESSION_EXPIRED', why, { cause: error })));
        }
      };
      const stopListening = this.onState(judge);
      const state = this.#session.toldState;
      if (state === 'closed' || state === 'auth-failed') {
        judge({ state, error: this.#session.lastError });
      }
    });
  }

  /**
   * Calls `listener` at every change of state, in order. What it throws is published on the
   * diagnostics channel and goes no further.
   * @returns stops it
   */
  onState(listener: (change: StateChange) => void): () => void {
    if (typeof listener !== 'function') {
      throw new InvalidArgumentError(`onState takes a function, not ${describe(listener)}`);
    }
    // Twice the same function is two listeners.
    const own = (change: StateChange) => listener(change);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /**
   * The state when the first is taken, then every change of it, in order. Ends after `closed` or `auth-failed`, or
   * when `signal` aborts. If more than 1,000 wait to be taken, the oldest are dropped.
   */
  states(options: { readonly signal?: AbortSignal } = {}): StoppableIterator<StateChange> {
    checkOptions('states', options, signalOnly);
    const { clock } = this.#caller;
    const begin = () => {
      const buffer = new EventBuffer<StateChange>(1_000, (changes) => changes.slice(1));
      const state = this.#session.toldState;
      const { session } = this;
      const atMs = clock.monotonicMs();
      buffer.push({ state, previous: state, atMs, session, error: undefined });
      return { buffer, stopListening: this.onState((change) => buffer.push(change)) };
    };
    return stoppable(options.signal, async function* (stop) {
      const { buffer, stopListening } = begin();
      try {
        for (;;) {
          const change = await orStopped(buffer.next(), stop);
          if (change === undefined) return;
          yield change;
          if (change.state === 'closed' || change.state === 'auth-failed') return;
        }
      } finally {
        stopListening();
      }
    });
  }

  /**
   * What another client needs to attach to this session; undefined before there is one. Then close
   * this client with `keepSession`.
   */
  exportSession(): ExportedSession | undefined {
    return this.#session.export();
  }

  /**
   * Waits for calls that were made before, ends the session on the server and the client in any
   * case within `closeTimeoutMs`. Calls that are not answered by then reject: with
   * ConnectionLossError if they were sent, else with ClosedError.
   * Idempotent. Rejects InvalidArgumentError alone, and has closed nothing then.
   */
  async close(options: { readonly keepSession?: boolean } = {}): Promise<void> {
    checkOptions('close', options, closeOptions);
    return this.#session.close(options.keepSession ?? false);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Nodes ------------------------------------------------------------------------------------------

  /**
   * Makes a node.
   * @returns rejects NodeExistsError, NoNodeError (no parent), RefusedError
   *   (NO_CHILDREN_FOR_EPHEMERALS), AuthError, and what every call may: SessionError,
   *   ConnectionLossError (`maybeApplied`), RequestTimeoutError, QueueFullError,
   *   PacketTooLargeError, ClosedError, InvalidArgumentError
   */
  async create(path: string, data: Data = null, options: CreateOptions = {}): Promise<CreateReply> {
    checkCreateOptions(options);
    if (options.protected !== undefined && options.protected !== false) {
      return createProtected(this.#caller, path, data, options, this.#withStat);
    }
    const plan = planCreate(this.#caller, path, data, options, this.#withStat);
    return sendCreate(this.#caller, path, plan, options);
  }

  /** The data of a node. Rejects NoNodeError. */
  async get(path: string, options?: CallOptions): Promise<GetReply> {
    checkOptions('get', options);
    checkPath(path);
    const body = { path: this.#caller.chroot.toServer(path), watch: false };
    return this.#caller.call(requests.getData, path, body, toGetReply, options);
  }

  /** Replaces the data of a node. Rejects NoNodeError, BadVersionError. */
  async set(path: string, data: Data, options: VersionOptions = {}): Promise<StatReply> {
    checkOptions('set', options, versionOptions);
    checkPath(path);
    const body: SetDataRequest = {
      path: this.#caller.chroot.toServer(path),
      data: toBytes(data, path),
      version: checkVersion(options.version, path),
    };
    return this.#caller.call(requests.setData, path, body, toStatReply, options);
  }

  /** Deletes a node without children. Rejects NoNodeError, BadVersionError, NotEmptyError. */
  async delete(path: string, options: VersionOptions = {}): Promise<Reply> {
    checkOptions('delete', options, versionOptions);
    checkPath(path);
    const body = {
      path: this.#caller.chroot.toServer(path),
      version: checkVersion(options.version, path),
    };
    return this.#caller.call(requests.delete, path, body, toReply, options);
  }

  /** What is known about a node; `stat` is null when there is none. (`exists` in the protocol.) */
  async stat(path: string, options?: CallOptions): Promise<MaybeStatReply> {
    checkOptions('stat', options);
    checkPath(path);
    const body = { path: this.#caller.chroot.toServer(path), watch: false };
    return this.#caller.call(requests.exists, path, body, toMaybeStatReply, options);
  }

  async exists(path: string, options?: CallOptions): Promise<boolean> {
    checkOptions('exists', options);
    const { stat } = await this.stat(path, options);
    return stat !== null;
  }

  /** Rejects NoNodeError. */
  async getChildren(path: string, options?: CallOptions): Promise<ChildrenReply> {
    checkOptions('getChildren', options);
    checkPath(path);
    const body = { path: this.#caller.chroot.toServer(path), watch: false };
    return this.#caller.call(requests.getChildren2, path, body, toChildrenReply, options);
  }

  /** The paths of ephemeral nodes of this session that begin with `prefix` (3.6). */
  async getEphemerals(prefix = '/', options?: CallOptions): Promise<EphemeralsReply> {
    checkOptions('getEphemerals', options);
    checkPath(prefix);
    const { chroot } = this.#caller;
    return this.#caller.call(
      requests.getEphemerals,
      prefix,
      { prefixPath: chroot.toServer(prefix) },
      {
        complete: ({ ephemerals }, { zxid, sentAt }) => ({
          // The server compares strings: "/ab" begins with "/a".
          paths: ephemerals.filter((path) => chroot.has(path)).map((path) => chroot.toUser(path)),
          zxid,
          sentAt,
        }),
      },
      options,
    );
  }

  /** How many nodes there are below a node, at any depth (3.6). */
  async getAllChildrenNumber(path: string, options?: CallOptions): Promise<CountReply> {
    checkOptions('getAllChildrenNumber', options);
    checkPath(path);
    return this.#caller.call(
      requests.getAllChildrenNumber,
      path,
      { path: this.#caller.chroot.toServer(path) },
      { complete: ({ totalNumber }, { zxid, sentAt }) => ({ count: totalNumber, zxid, sentAt }) },
      options,
    );
  }

  /**
   * Waits until the server that we are connected to has caught up with the leader: reads after it
   * see what was committed before it. The leader itself may answer a moment before it has applied all
   * that it has committed; who must know uses `confirm`.
   */
  async sync(path = '/', options?: CallOptions): Promise<Reply> {
    checkOptions('sync', options);
    checkPath(path);
    const body = { path: this.#caller.chroot.toServer(path) };
    return this.#caller.call(requests.sync, path, body, toReply, options);
  }

  // Access -----------------------------------------------------------------------------------------

  async getAcl(path: string, options?: CallOptions): Promise<AclReply> {
    checkOptions('getAcl', options);
    checkPath(path);
    return this.#caller.call(
      requests.getAcl,
      path,
      { path: this.#caller.chroot.toServer(path) },
      { complete: ({ acl, stat }, { zxid, sentAt }) => ({ acl, stat, zxid, sentAt }) },
      options,
    );
  }

  /** @param options `version` is that of the ACL (`aversion`) */
  async setAcl(
    path: string,
    acl: readonly Acl[],
    options: VersionOptions = {},
  ): Promise<StatReply> {
    checkOptions('setAcl', options, versionOptions);
    checkPath(path);
    checkAcl(acl);
    const body = {
      path: this.#caller.chroot.toServer(path),
      acl,
      version: checkVersion(options.version, path),
    };
    return this.#caller.call(requests.setAcl, path, body, toStatReply, options);
  }

  /**
   * Authenticates this session, now and on every connection to come. Refused credentials end the
   * client: the server closes on them, and would again.
   * @returns rejects AuthError, and RequestTimeoutError when no server answers; the credentials are
   *   kept then
   */
  async addAuth(
    scheme: string,
    credentials: string | Uint8Array,
    options: CallOptions = {},
  ): Promise<void> {
    checkOptions('addAuth', options);
    const { signal, timeoutMs } = options;
    const checked = toCredentials(scheme, credentials);
    if (timeoutMs !== undefined) checkTimeout('timeoutMs', timeoutMs);
    signal?.throwIfAborted();
    const refusal = this.#session.refusal({ operation: 'auth' });
    if (refusal !== undefined) throw refusal;
    return this.#session.addAuth(checked, timeoutMs, signal);
  }

  /** Who the server believes us to be (3.7). */
  async whoAmI(options?: CallOptions): Promise<IdentitiesReply> {
    checkOptions('whoAmI', options);
    return this.#caller.call(
      requests.whoAmI,
      undefined,
      {},
      { complete: ({ identities }, { zxid, sentAt }) => ({ identities, zxid, sentAt }) },
      options,
    );
  }

  // The ensemble -------------------------------------------------------------------------------------

  /** The ensemble's configuration, one server a line. Never below the chroot. */
  async getConfig(options?: CallOptions): Promise<GetReply> {
    checkOptions('getConfig', options);
    const path = '/zookeeper/config';
    const body = { path, watch: false };
    return this.#caller.call(requests.getData, path, body, toGetReply, options);
  }

  /**
   * Changes the members of the ensemble (3.5; needs `reconfigEnabled=true` and rights).
   * @returns the new configuration
   */
  async reconfig(change: Reconfiguration, options: ReconfigOptions = {}): Promise<GetReply> {
    checkOptions('a change of reconfig', change ?? null, reconfiguration);
    checkOptions('reconfig', options, reconfigOptions);
    const { configId = -1n } = options;
    if (typeof configId !== 'bigint' || BigInt.asIntN(64, configId) !== configId) {
      throw new InvalidArgumentError(
        `configId is a signed 64-bit bigint (-1n: any), not ${describe(configId)}`,
      );
    }
    const { joining = [], leaving = [], members } = change;
    for (const list of [joining, leaving, members ?? []]) {
      if (!Array.isArray(list)) {
        throw new InvalidArgumentError(
          `reconfig takes lists of servers, such as ['server.5=h:2888:3888;2181'], not ${describe(list)}`,
        );
      }
    }
    if (members !== undefined && (joining.length > 0 || leaving.length > 0)) {
      throw new InvalidArgumentError('reconfig takes members, or joining and leaving, not both');
    }
    if (members === undefined && joining.length + leaving.length === 0) {
      throw new InvalidArgumentError('reconfig changes nothing: give joining, leaving or members');
    }
    const list = (items: readonly (string | number)[]) =>
      items.length === 0 ? null : items.join(',');
    return this.#caller.call(
      requests.reconfig,
      undefined,
      {
        joiningServers: list(joining),
        leavingServers: list(leaving),
        newMembers: members === undefined ? null : list(members),
        curConfigId: configId,
      },
      toGetReply,
      options,
    );
  }

  // Several at once --------------------------------------------------------------------------------

  transaction(): Transaction {
    return new Transaction(this.#caller, this.#withStat);
  }

  /** Several reads of one view in one request (3.6). */
  async multiRead(
    reads: readonly MultiReadOperation[],
    options?: CallOptions,
  ): Promise<MultiReadReply> {
    return multiRead(this.#caller, reads, options);
  }

  /**
   * Proves that nodes exist, by committing a transaction that only checks them: unlike a read, a
   * ping or a session, a server that is cut off from its quorum cannot answer it. What it proves
   * was true at some time after `sentAt`. It takes a transaction but changes no node and wakes no
   * watch.
   * @returns rejects NoNodeError or BadVersionError with `path` and `index` of the first that fails
   */
  async confirm(nodes: readonly Confirmed[], options?: CallOptions): Promise<Reply> {
    if (!Array.isArray(nodes) || nodes.length === 0) {
      throw new InvalidArgumentError('confirm takes at least one path');
    }
    checkOptions('confirm', options);
    const wanted = nodes.map((node) => {
      if (typeof node === 'string') return { path: node };
      checkOptions('a node of confirm', node ?? null, confirmed);
      return node;
    });
    const operations = wanted.map(({ path, version }): MultiOperation => {
      checkPath(path);
      const body = {
        path: this.#caller.chroot.toServer(path),
        version: checkVersion(version, path),
      };
      return { opcode: opcodes.check, body };
    });
    return this.#caller.call(
      requests.multi,
      undefined,
      operations,
      {
        complete: (results, { zxid, sentAt }) => {
          const failure = findFailure(results, (index) => ({
            path: wanted[index]?.path,
            operation: 'confirm',
            zxid,
          }));
          if (failure !== undefined) throw failure.error;
          return { zxid, sentAt };
        },
      },
      options,
    );
  }

  // Watches ----------------------------------------------------------------------------------------

  /**
   * The data of a node, undefined while it does not exist, and a promise of the next change after
   * it: none is missed between the two, also not while the connection is away.
   */
  async watch(path: string, options?: CallOptions): Promise<NodeWatch<GetReply | undefined>> {
    return watchNode(this.#caller, path, options);
  }

  /** The same for the list of children. Rejects NoNodeError. */
  async watchChildren(path: string, options?: CallOptions): Promise<NodeWatch<ChildrenReply>> {
    return watchChildren(this.#caller, path, options);
  }

  /**
   * The data of a node at once, and again after every change; undefined while it does not exist.
   * The latest wins: whoever takes slowly misses what is over. Goes on over reconnects and
   * sessions. Throws what no waiting repairs, such as AuthError; ends when `signal` aborts.
   */
  follow(
    path: string,
    options: { readonly signal?: AbortSignal } = {},
  ): StoppableIterator<GetReply | undefined> {
    checkOptions('follow', options, signalOnly);
    return follow(this, this.#caller.clock, path, options.signal);
  }

  /** The same for the list of children. */
  followChildren(
    path: string,
    options: { readonly signal?: AbortSignal } = {},
  ): StoppableIterator<ChildrenReply | undefined> {
    checkOptions('followChildren', options, signalOnly);
    return followChildren(this, this.#caller.clock, path, options.signal);
  }

  /** A watch that stays (3.6). The node need not exist. */
  async addWatch(path: string, options: AddWatchOptions = {}): Promise<PersistentWatch> {
    if (!this.#session.setWatches2) {
      throw new InvalidArgumentError('persistent watches need a server of 3.6; see compatibility');
    }
    return PersistentWatch.open(this.#caller, path, options);
  }

  /** Whether the server has a watch of this session on a path (3.5). */
  async checkWatches(
    path: string,
    type: keyof typeof watcherTypes = 'any',
    options?: CallOptions,
  ): Promise<boolean> {
    checkOptions('checkWatches', options);
    checkPath(path);
    this.#needRemoveWatches();
    const body = { path: this.#caller.chroot.toServer(path), type: watcherType(type) };
    return this.#caller.call(
      requests.checkWatches,
      path,
      body,
      { complete: () => true, noWatcher: () => false },
      options,
    );
  }

  /**
   * Removes watches of this session on a path (3.5): one-shots resolve with `lost`, persistent ones
   * end. Rejects RefusedError (NO_WATCHER) when there is none.
   */
  async removeWatches(
    path: string,
    type: keyof typeof watcherTypes = 'any',
    options?: CallOptions,
  ): Promise<void> {
    checkOptions('removeWatches', options);
    checkPath(path);
    this.#needRemoveWatches();
    const serverPath = this.#caller.chroot.toServer(path);
    const { watches } = this.#session;
    const listeners = watches.listenersOf(serverPath);
    return this.#caller.call(
      requests.removeWatches,
      path,
      { path: serverPath, type: watcherType(type) },
      {
        complete: () => {
          watches.lose(serverPath, type);
          // The server takes half of a persistent watch away; the other half would tell half a story.
          if (watches.forgetPersistent(serverPath, listeners) && type !== 'any') {
            this.#session.removeFromServer(serverPath, 'any');
          }
        },
      },
      options,
    );
  }

  #needRemoveWatches(): void {
    if (this.#session.removeWatches) return;
    throw new InvalidArgumentError(
      'checkWatches and removeWatches need a server of 3.5; see compatibility',
    );
  }

  // Helpers ----------------------------------------------------------------------------------------

  /** Makes a node and those above it that are missing. `/` makes the chroot. */
  async ensurePath(path: string, options: EnsurePathOptions = {}): Promise<void> {
    return ensurePath(this.#caller, path, options, this.#withStat);
  }

  /**
   * Deletes a node and all below it, the deepest first; not atomic. Rejects ZooKeeperError
   * (TOO_MANY_NODES) before anything is deleted when there are more than `maxNodes`.
   */
  async deleteRecursive(
    path: string,
    options: DeleteRecursiveOptions = {},
  ): Promise<{ readonly deleted: number }> {
    return deleteRecursive(this.#caller, path, options);
  }

  /** A listener may cause the next change: all hear of this one first. */
  #tell(change: StateChange): void {
    this.#changes.push(change);
    if (this.#changes.length > 1) return;
    for (let next = this.#changes[0]; next !== undefined; next = this.#changes[0]) {
      for (const listener of [...this.#listeners]) {
        try {
          listener(next);
        } catch (error) {
          publish('incumbent:zookeeper:trouble', this.#number, {
            what: 'a state listener threw',
            error,
          });
        }
      }
      this.#changes.shift();
    }
  }
}

function isReady(state: State): boolean {
  return state === 'connected' || state === 'read-only';
}

function watcherType(type: keyof typeof watcherTypes): number {
  if (!Object.hasOwn(watcherTypes, type)) {
    throw new InvalidArgumentError(
      `the type of a watch is children, data or any, not ${describe(type)}`,
    );
  }
  return watcherTypes[type];
}

// Made once: a call makes nothing but its request and its promise.
const toGetReply: ReplyHandlers<{ data: Uint8Array | null; stat: Stat }, GetReply> = {
  complete: ({ data, stat }, answer) => new GetReply(data, stat, answer),
};
const toStatReply: ReplyHandlers<{ stat: Stat }, StatReply> = {
  complete: ({ stat }, { zxid, sentAt }) => ({ stat, zxid, sentAt }),
};
const toMaybeStatReply: ReplyHandlers<{ stat: Stat }, MaybeStatReply> = {
  complete: ({ stat }, { zxid, sentAt }) => ({ stat, zxid, sentAt }),
  absent: ({ zxid, sentAt }: AnswerOf) => ({ stat: null, zxid, sentAt }),
};
const toChildrenReply: ReplyHandlers<{ children: readonly string[]; stat: Stat }, ChildrenReply> = {
  complete: ({ children, stat }, { zxid, sentAt }) => ({ children, stat, zxid, sentAt }),
};
const toReply: ReplyHandlers<unknown, Reply> = {
  complete: (_, { zxid, sentAt }) => ({ zxid, sentAt }),
};
