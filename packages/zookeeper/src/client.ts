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
import { watchChildren, watchNode, watchStat } from './node-watch.ts';
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
const silentOptions = namesOf<{ silentForMs: number }>({ silentForMs: true });
const closeOptions = namesOf<{ keepSession: boolean }>({ keepSession: true });

let clients = 0;

/**
 * Makes a client at once. It connects in the background, and calls wait for the connection.
 * @param url such as `zk://h1:2181,h2:2181/chroot?timeout=10s`; `zks://` means TLS
 * @throws InvalidArgumentError for a url or an option that cannot be used
 */
export function createClient(url: string, options: ClientOptions = {}): ZooKeeper {
  return new ZooKeeper(url, options);
}

/**
 * Makes a client, and resolves when it has a session.
 *
 * Rejects with:
 *
 * - InvalidArgumentError: the url or an option cannot be used;
 * - ConnectError: no server gave a session within `connectTimeoutMs`;
 * - AuthError: the credentials are refused;
 * - SessionError: the session of the option `session` has expired;
 * - the reason of `signal`.
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

/**
 * A ZooKeeper client. Its session outlives connections: after a lost connection it attaches to
 * another server, and after an expiry it begins a new session. Made by `createClient` or `connect`.
 *
 * Every call may reject with:
 *
 * - InvalidArgumentError: nothing was sent;
 * - ConnectionLossError: the connection broke before the reply; `maybeApplied` tells whether a
 *   write may have been applied;
 * - RequestTimeoutError: no reply within the call's time, with `maybeApplied` likewise;
 * - SessionError: the session expired before the reply;
 * - AuthError: the ACL or the credentials do not allow it;
 * - QueueFullError and PacketTooLargeError: nothing was sent;
 * - RefusedError and ServerError: other refusals of the server;
 * - ProtocolError: the server's reply cannot be understood;
 * - ClosedError: the client is closed.
 *
 * Calls are sent in the order in which they are made. The client sends no request twice.
 * Exceptions: a read that was sent together with a handshake that failed, and `create` with the
 * option `protected`.
 */
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

  /** The state, judged at the time of reading: it is `expired` even if no timer has run since. */
  get state(): State {
    return this.#session.state;
  }

  /** The session; undefined while there is none. */
  get session(): SessionInfo | undefined {
    return this.#session.info;
  }

  /**
   * The zxid of the latest transaction that this client has seen. No server that is behind it is
   * accepted, and it never goes back. The only exception: the session has expired, and all servers
   * turn out to have lost their data.
   */
  get lastZxid(): bigint {
    return this.#session.lastZxid;
  }

  /** Counters of this client since it was made. A snapshot. */
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
   * @returns rejects with ConnectError after `timeoutMs` (default: `connectTimeoutMs`), AuthError,
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
   * Calls `listener` at every change of state, in order. An error that it throws is published on
   * the diagnostics channel `incumbent:zookeeper:trouble` and goes no further.
   * @returns stops it
   */
  onState(listener: (change: StateChange) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Iterates over states: first the state at the first `next`, then every change, in order. Ends
   * after `closed` or `auth-failed`, or when `signal` aborts. If more than 1,000 changes wait to be
   * taken, the oldest are dropped.
   */
  states(options: { readonly signal?: AbortSignal } = {}): StoppableIterator<StateChange> {
    checkOptions('states', options, signalOnly);
    return this.#listeners.iterate(this.#session, this.#caller.clock, options.signal);
  }

  /**
   * The data with which another client can attach to this session, as its option `session`;
   * undefined while there is none. Close this client with `keepSession` afterwards.
   */
  exportSession(): ExportedSession | undefined {
    return this.#session.export();
  }

  /**
   * Leaves a server that has gone silent, sooner than the client does by itself (0.6 of the session
   * timeout). For callers that cannot wait that long, such as a leader that must renew. The session
   * goes on on another server.
   *
   * It leaves only if nothing has arrived for `silentForMs`, a request has waited as long for its
   * answer, and the connection string has another server. Calls that wait for an answer reject with
   * ConnectionLossError.
   */
  leaveSilentServer(options: { readonly silentForMs: number }): void {
    checkOptions('leaveSilentServer', options, silentOptions);
    this.#session.leaveSilentServer(checkTimeout('silentForMs', options.silentForMs));
  }

  /**
   * Waits for calls that were made before, ends the session on the server, and then ends the
   * client. The client ends within `closeTimeoutMs` in any case. Calls that are not answered by
   * then reject: with ConnectionLossError if they were sent, otherwise with ClosedError.
   * Idempotent. Rejects only with InvalidArgumentError, and then has closed nothing.
   * @param options `keepSession: true` leaves the session to another client; see `exportSession`
   */
  async close(options: { readonly keepSession?: boolean } = {}): Promise<void> {
    checkOptions('close', options, closeOptions);
    return this.#session.close(options.keepSession ?? false);
  }

  /** Closes the client: see `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Nodes ------------------------------------------------------------------------------------------

  /**
   * Makes a node. Rejects with NodeExistsError, or NoNodeError if there is no parent. Also with
   * RefusedError (NO_CHILDREN_FOR_EPHEMERALS) if the parent is ephemeral, and AuthError if the
   * parent's ACL denies it or `acl` is invalid.
   * @returns the path that was made: the server may have appended a number
   */
  async create(path: string, data: Data = null, options: CreateOptions = {}): Promise<CreateReply> {
    checkCreateOptions(options);
    if (options.protected !== undefined && options.protected !== false) {
      return new ProtectedCreate(this.#caller, path, data, options).run();
    }
    const plan = planCreate(this.#caller, path, data, options);
    return sendCreate(this.#caller, path, plan, options);
  }

  /** Reads the data of a node. Rejects with NoNodeError. */
  async get(path: string, options?: CallOptions): Promise<GetReply> {
    checkOptions('get', options);
    const body = { path: this.#caller.serverPath(path), watch: false };
    return this.#caller.call(operations.getData, path, body, options);
  }

  /** Replaces the data of a node. Rejects with NoNodeError or BadVersionError. */
  async set(path: string, data: Data, options: VersionOptions = {}): Promise<StatReply> {
    checkOptions('set', options, versionOptions);
    const body = {
      path: this.#caller.serverPath(path),
      data: toBytes(data, path),
      version: checkVersion(options.version, path),
    };
    return this.#caller.call(operations.setData, path, body, options);
  }

  /**
   * Deletes a node without children. Rejects with NoNodeError, BadVersionError or NotEmptyError.
   */
  async delete(path: string, options: VersionOptions = {}): Promise<Reply> {
    checkOptions('delete', options, versionOptions);
    const body = {
      path: this.#caller.serverPath(path),
      version: checkVersion(options.version, path),
    };
    return this.#caller.call(operations.deleteNode, path, body, options);
  }

  /**
   * Reads the Stat of a node; `stat` is null if there is no such node. (The protocol calls this
   * `exists`.)
   */
  async stat(path: string, options?: CallOptions): Promise<MaybeStatReply> {
    checkOptions('stat', options);
    const body = { path: this.#caller.serverPath(path), watch: false };
    return this.#caller.call(operations.exists, path, body, options);
  }

  /** Whether a node exists. */
  async exists(path: string, options?: CallOptions): Promise<boolean> {
    checkOptions('exists', options);
    const { stat } = await this.stat(path, options);
    return stat !== null;
  }

  /** Reads the names of a node's children, in no order. Rejects with NoNodeError. */
  async getChildren(path: string, options?: CallOptions): Promise<ChildrenReply> {
    checkOptions('getChildren', options);
    const body = { path: this.#caller.serverPath(path), watch: false };
    return this.#caller.call(operations.getChildren, path, body, options);
  }

  /**
   * The paths of this session's ephemeral nodes that begin with `prefix`. Needs a server of 3.6.
   */
  async getEphemerals(prefix = '/', options?: CallOptions): Promise<EphemeralsReply> {
    checkOptions('getEphemerals', options);
    const body = { prefixPath: this.#caller.serverPath(prefix) };
    return this.#caller.call(operations.getEphemerals(this.#caller.chroot), prefix, body, options);
  }

  /** How many nodes there are below a node, at any depth. Needs a server of 3.6. */
  async getAllChildrenNumber(path: string, options?: CallOptions): Promise<CountReply> {
    checkOptions('getAllChildrenNumber', options);
    const body = { path: this.#caller.serverPath(path) };
    return this.#caller.call(operations.getAllChildrenNumber, path, body, options);
  }

  /**
   * Waits until the server of this connection has caught up with the leader: later reads see what
   * was committed before. Not promised: the leader itself may answer a moment before it has applied
   * all that it has committed. For a proof use `confirm`.
   */
  async sync(path = '/', options?: CallOptions): Promise<Reply> {
    checkOptions('sync', options);
    const body = { path: this.#caller.serverPath(path) };
    return this.#caller.call(operations.sync, path, body, options);
  }

  // Access -----------------------------------------------------------------------------------------

  /** Reads the ACL of a node. Rejects with NoNodeError. */
  async getAcl(path: string, options?: CallOptions): Promise<AclReply> {
    checkOptions('getAcl', options);
    const body = { path: this.#caller.serverPath(path) };
    return this.#caller.call(operations.getAcl, path, body, options);
  }

  /**
   * Replaces the ACL of a node. Rejects with NoNodeError or BadVersionError.
   * @param options `version` is that of the ACL (`aversion`)
   */
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
   * Authenticates this session, now and on every later connection. If the credentials are refused,
   * the client ends in the state `auth-failed`: the server closes the connection, and would do so
   * again.
   * @returns rejects with AuthError, and with RequestTimeoutError if no server answers in time; the
   *   credentials are kept then
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

  /** The identities with which the server knows this session. Needs a server of 3.7. */
  async whoAmI(options?: CallOptions): Promise<IdentitiesReply> {
    checkOptions('whoAmI', options);
    return this.#caller.call(operations.whoAmI, undefined, {}, options);
  }

  // The ensemble -------------------------------------------------------------------------------------

  /** Reads the configuration of the ensemble, one server a line. It is never below the chroot. */
  async getConfig(options?: CallOptions): Promise<GetReply> {
    checkOptions('getConfig', options);
    const path = '/zookeeper/config';
    const body = { path, watch: false };
    return this.#caller.call(operations.getData, path, body, options);
  }

  /**
   * Changes the members of the ensemble. Needs a server of 3.5 with `reconfigEnabled=true`, and the
   * right to do so. Rejects with RefusedError: RECONFIG_DISABLED, RECONFIG_IN_PROGRESS or
   * NEW_CONFIG_NO_QUORUM.
   * @returns the new configuration
   */
  async reconfig(change: Reconfiguration, options: ReconfigOptions = {}): Promise<GetReply> {
    return reconfig(this.#caller, change, options);
  }

  // Several at once --------------------------------------------------------------------------------

  /**
   * Begins a transaction: operations that are applied all together or not at all. Nothing is sent
   * before `commit`.
   */
  transaction(): Transaction {
    return new Transaction(this.#caller);
  }

  /**
   * Several reads in one request, all of the same state of the tree. Needs a server of 3.6. A read
   * that fails does not disturb the others: its result has the error.
   * @returns rejects with InvalidArgumentError under `compatibility`
   */
  async multiRead(
    reads: readonly MultiReadOperation[],
    options?: CallOptions,
  ): Promise<MultiReadReply> {
    // An older server closes the connection on such a request.
    if (!this.#session.setWatches2) {
      throw new InvalidArgumentError('multiRead needs a server of 3.6; see compatibility');
    }
    return multiRead(this.#caller, reads, options);
  }

  /**
   * Proves that nodes exist, by committing a transaction that only checks them. A server that is
   * cut off from its quorum cannot answer it, unlike a read, a ping or a session. The proved facts
   * were true at some time after `sentAt`. It changes no node and wakes no watch, but costs the
   * servers a transaction.
   * @returns rejects with NoNodeError or BadVersionError, with `path` and `index` of the first node
   *   that fails
   */
  async confirm(nodes: readonly Confirmed[], options?: CallOptions): Promise<Reply> {
    return confirm(this.#caller, nodes, options);
  }

  // Watches ----------------------------------------------------------------------------------------

  /**
   * Reads the data of a node (undefined if it does not exist), and promises its next change. No
   * change between the two is missed, even if the connection is lost meanwhile.
   */
  async watch(path: string, options?: CallOptions): Promise<NodeWatch<GetReply | undefined>> {
    return watchNode(this.#caller, path, options);
  }

  /**
   * Reads the stat of a node (null if it does not exist), and promises the next change of its data
   * or existence. It takes one request in both cases. `watch`, which reads the data, takes two for
   * a node that does not exist.
   */
  async watchStat(path: string, options?: CallOptions): Promise<NodeWatch<MaybeStatReply>> {
    return watchStat(this.#caller, path, options);
  }

  /** The same for the list of children. Rejects with NoNodeError. */
  async watchChildren(path: string, options?: CallOptions): Promise<NodeWatch<ChildrenReply>> {
    return watchChildren(this.#caller, path, options);
  }

  /**
   * Iterates over the data of a node: at once, and again after every change; undefined while it
   * does not exist. Only the latest data count: a slow consumer misses those in between. It goes on
   * over reconnects and sessions. It throws an error that no waiting cures, such as AuthError, and
   * ends when `signal` aborts.
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

  /**
   * Sets a watch that stays. Needs a server of 3.6. The node need not exist.
   * @returns rejects with InvalidArgumentError under `compatibility`
   */
  async addWatch(path: string, options: AddWatchOptions = {}): Promise<PersistentWatch> {
    if (!this.#session.setWatches2) {
      throw new InvalidArgumentError('persistent watches need a server of 3.6; see compatibility');
    }
    return PersistentWatch.open(this.#caller, path, options);
  }

  /** Whether the server has a watch of this session on a path. Needs a server of 3.5. */
  async checkWatches(
    path: string,
    type: WatchType = 'any',
    options?: CallOptions,
  ): Promise<boolean> {
    return checkWatches(this.#caller, path, type, options);
  }

  /**
   * Removes watches of this session on a path. Needs a server of 3.5. One-shot watches resolve with
   * `lost`, persistent ones end. Rejects with RefusedError (NO_WATCHER) if there is none.
   */
  async removeWatches(path: string, type: WatchType = 'any', options?: CallOptions): Promise<void> {
    return removeWatches(this.#caller, path, type, options);
  }

  // Helpers ----------------------------------------------------------------------------------------

  /**
   * Makes a node and those above it that are missing. A node that exists is no error. `/` makes the
   * chroot.
   */
  async ensurePath(path: string, options: EnsurePathOptions = {}): Promise<void> {
    return ensurePath(this.#caller, path, options);
  }

  /**
   * Deletes a node and all below it, the deepest first. Not atomic. It rejects with ZooKeeperError
   * (TOO_MANY_NODES), before anything is deleted, if there are more than `maxNodes`.
   * @returns how many nodes were deleted; 0 if there was none
   */
  async deleteRecursive(
    path: string,
    options: DeleteRecursiveOptions = {},
  ): Promise<{ readonly deleted: number }> {
    return deleteRecursive(this.#caller, path, options);
  }
}
