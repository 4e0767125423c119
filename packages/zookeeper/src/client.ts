/// <reference lib="esnext.disposable" preserve="true" />

import { checkAcl } from './acl.ts';
import type { CallOptions, Data, VersionOptions } from './arguments.ts';
import {
  checkOptions,
  checkTimeout,
  checkVersion,
  namesOf,
  toBytes,
  versionOptions,
} from './arguments.ts';
import { Caller } from './caller.ts';
import type { Confirmed } from './confirm.ts';
import { confirm } from './confirm.ts';
import { formatHosts } from './connection-string.ts';
import type { Counters } from './counters.ts';
import { Tally } from './counters.ts';
import type { CreateOptions } from './create.ts';
import { checkCreateOptions, planCreate, sendCreate } from './create.ts';
import { InvalidArgumentError } from './errors.ts';
import { follow, followChildren } from './follow.ts';
import type { StoppableIterator } from './iterate.ts';
import type { MultiReadOperation, MultiReadReply } from './multi-read.ts';
import { multiRead } from './multi-read.ts';
import type { NodeWatch } from './node-watch.ts';
import { watchChildren, watchNode } from './node-watch.ts';
import * as operations from './operations.ts';
import type { ClientOptions } from './options.ts';
import { connectOptions, resolveOptions, toCredentials } from './options.ts';
import type { AddWatchOptions } from './persistent-watch.ts';
import { PersistentWatch } from './persistent-watch.ts';
import { ProtectedCreate } from './protected-create.ts';
import type { Acl } from './protocol/messages.ts';
import type { ReconfigOptions, Reconfiguration } from './reconfig.ts';
import { reconfig } from './reconfig.ts';
import type {
  AclReply,
  ChildrenReply,
  CountReply,
  CreateReply,
  EphemeralsReply,
  GetReply,
  IdentitiesReply,
  MaybeStatReply,
  Reply,
  StatReply,
} from './replies.ts';
import { checkWatches, removeWatches } from './server-watches.ts';
import { Session } from './session/session.ts';
import type { WatchType } from './session/watch-registry.ts';
import type { ExportedSession, SessionInfo, State, StateChange } from './state.ts';
import { StateListeners } from './state-listeners.ts';
import { Transaction } from './transaction.ts';
import type { DeleteRecursiveOptions, EnsurePathOptions } from './trees.ts';
import { deleteRecursive, ensurePath } from './trees.ts';
import { untilConnected } from './until-connected.ts';

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
  readonly #listeners: StateListeners;

  constructor(url: string, options: ClientOptions = {}) {
    const resolved = resolveOptions(url, options);
    clients += 1;
    this.#number = clients;
    this.#hosts = formatHosts(resolved.session.hosts);
    this.#connectTimeoutMs = resolved.connectTimeoutMs;
    this.#listeners = new StateListeners(this.#number);
    this.#session = new Session(resolved.session, resolved.credentials, {
      ...{ number: this.#number, tally: this.#tally },
      onState: (change) => this.#listeners.tell(change),
    });
    const { chroot, clock } = resolved.session;
    const withStat = resolved.compatibility !== '3.4';
    this.#caller = new Caller(this.#session, chroot, clock, withStat);
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
    return this.#untilConnected(options, false);
  }

  /** @internal */
  static async connect(
    url: string,
    options: ClientOptions,
    signal: AbortSignal | undefined,
  ): Promise<ZooKeeper> {
    const client = new ZooKeeper(url, options);
    try {
      await client.#untilConnected({ signal }, options.session !== undefined);
      return client;
    } catch (error) {
      await client.close({ keepSession: true });
      throw error;
    }
  }

  #untilConnected(options: CallOptions, rejectExpired: boolean): Promise<void> {
    const { signal, timeoutMs = this.#connectTimeoutMs } = options;
    const watched = {
      ...{ session: this.#session, listeners: this.#listeners },
      ...{ clock: this.#caller.clock, hosts: this.#hosts },
    };
    return untilConnected(watched, { signal, timeoutMs, rejectExpired });
  }

  /**
   * Calls `listener` at every change of state, in order. What it throws is published on the
   * diagnostics channel and goes no further.
   * @returns stops it
   */
  onState(listener: (change: StateChange) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * The state when the first is taken, then every change of it, in order. Ends after `closed` or `auth-failed`, or
   * when `signal` aborts. If more than 1,000 wait to be taken, the oldest are dropped.
   */
  states(options: { readonly signal?: AbortSignal } = {}): StoppableIterator<StateChange> {
    checkOptions('states', options, signalOnly);
    return this.#listeners.iterate(this.#session, this.#caller.clock, options.signal);
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
      return new ProtectedCreate(this.#caller, path, data, options).run();
    }
    const plan = planCreate(this.#caller, path, data, options);
    return sendCreate(this.#caller, path, plan, options);
  }

  /** The data of a node. Rejects NoNodeError. */
  async get(path: string, options?: CallOptions): Promise<GetReply> {
    checkOptions('get', options);
    const body = { path: this.#caller.serverPath(path), watch: false };
    return this.#caller.call(operations.getData, path, body, options);
  }

  /** Replaces the data of a node. Rejects NoNodeError, BadVersionError. */
  async set(path: string, data: Data, options: VersionOptions = {}): Promise<StatReply> {
    checkOptions('set', options, versionOptions);
    const body = {
      path: this.#caller.serverPath(path),
      data: toBytes(data, path),
      version: checkVersion(options.version, path),
    };
    return this.#caller.call(operations.setData, path, body, options);
  }

  /** Deletes a node without children. Rejects NoNodeError, BadVersionError, NotEmptyError. */
  async delete(path: string, options: VersionOptions = {}): Promise<Reply> {
    checkOptions('delete', options, versionOptions);
    const body = {
      path: this.#caller.serverPath(path),
      version: checkVersion(options.version, path),
    };
    return this.#caller.call(operations.deleteNode, path, body, options);
  }

  /** What is known about a node; `stat` is null when there is none. (`exists` in the protocol.) */
  async stat(path: string, options?: CallOptions): Promise<MaybeStatReply> {
    checkOptions('stat', options);
    const body = { path: this.#caller.serverPath(path), watch: false };
    return this.#caller.call(operations.exists, path, body, options);
  }

  async exists(path: string, options?: CallOptions): Promise<boolean> {
    checkOptions('exists', options);
    const { stat } = await this.stat(path, options);
    return stat !== null;
  }

  /** Rejects NoNodeError. */
  async getChildren(path: string, options?: CallOptions): Promise<ChildrenReply> {
    checkOptions('getChildren', options);
    const body = { path: this.#caller.serverPath(path), watch: false };
    return this.#caller.call(operations.getChildren, path, body, options);
  }

  /** The paths of ephemeral nodes of this session that begin with `prefix` (3.6). */
  async getEphemerals(prefix = '/', options?: CallOptions): Promise<EphemeralsReply> {
    checkOptions('getEphemerals', options);
    const body = { prefixPath: this.#caller.serverPath(prefix) };
    return this.#caller.call(operations.getEphemerals(this.#caller.chroot), prefix, body, options);
  }

  /** How many nodes there are below a node, at any depth (3.6). */
  async getAllChildrenNumber(path: string, options?: CallOptions): Promise<CountReply> {
    checkOptions('getAllChildrenNumber', options);
    const body = { path: this.#caller.serverPath(path) };
    return this.#caller.call(operations.getAllChildrenNumber, path, body, options);
  }

  /**
   * Waits until the server that we are connected to has caught up with the leader: reads after it
   * see what was committed before it. The leader itself may answer a moment before it has applied all
   * that it has committed; who must know uses `confirm`.
   */
  async sync(path = '/', options?: CallOptions): Promise<Reply> {
    checkOptions('sync', options);
    const body = { path: this.#caller.serverPath(path) };
    return this.#caller.call(operations.sync, path, body, options);
  }

  // Access -----------------------------------------------------------------------------------------

  async getAcl(path: string, options?: CallOptions): Promise<AclReply> {
    checkOptions('getAcl', options);
    const body = { path: this.#caller.serverPath(path) };
    return this.#caller.call(operations.getAcl, path, body, options);
  }

  /** @param options `version` is that of the ACL (`aversion`) */
  async setAcl(
    path: string,
    acl: readonly Acl[],
    options: VersionOptions = {},
  ): Promise<StatReply> {
    checkOptions('setAcl', options, versionOptions);
    const serverPath = this.#caller.serverPath(path);
    checkAcl(acl);
    const body = {
      path: serverPath,
      acl,
      version: checkVersion(options.version, path),
    };
    return this.#caller.call(operations.setAcl, path, body, options);
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
    return this.#caller.call(operations.whoAmI, undefined, {}, options);
  }

  // The ensemble -------------------------------------------------------------------------------------

  /** The ensemble's configuration, one server a line. Never below the chroot. */
  async getConfig(options?: CallOptions): Promise<GetReply> {
    checkOptions('getConfig', options);
    const path = '/zookeeper/config';
    const body = { path, watch: false };
    return this.#caller.call(operations.getData, path, body, options);
  }

  /**
   * Changes the members of the ensemble (3.5; needs `reconfigEnabled=true` and rights).
   * @returns the new configuration
   */
  async reconfig(change: Reconfiguration, options: ReconfigOptions = {}): Promise<GetReply> {
    return reconfig(this.#caller, change, options);
  }

  // Several at once --------------------------------------------------------------------------------

  transaction(): Transaction {
    return new Transaction(this.#caller);
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
    return confirm(this.#caller, nodes, options);
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
    type: WatchType = 'any',
    options?: CallOptions,
  ): Promise<boolean> {
    return checkWatches(this.#caller, path, type, options);
  }

  /**
   * Removes watches of this session on a path (3.5): one-shots resolve with `lost`, persistent ones
   * end. Rejects RefusedError (NO_WATCHER) when there is none.
   */
  async removeWatches(path: string, type: WatchType = 'any', options?: CallOptions): Promise<void> {
    return removeWatches(this.#caller, path, type, options);
  }

  // Helpers ----------------------------------------------------------------------------------------

  /** Makes a node and those above it that are missing. `/` makes the chroot. */
  async ensurePath(path: string, options: EnsurePathOptions = {}): Promise<void> {
    return ensurePath(this.#caller, path, options);
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
}
