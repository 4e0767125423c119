import type { Clock } from '@incumbent/zookeeper';
import { createClient, ZooKeeper } from '@incumbent/zookeeper';
import { formatDuration, InvalidOptionError } from 'incumbent';
import { systemClock } from '../clock.ts';
import { gemManagers } from '../gem-lock.ts';
import type { Paths } from '../layout.ts';
import { pathsBelow } from '../layout.ts';
import type { HostAndPort } from '../node-address.ts';
import { TimeUp } from './bound.ts';
import type { ChangeListener } from './change-teller.ts';
import { ChangeTeller } from './change-teller.ts';
import { Connections } from './connections.ts';
import type { Dedicated } from './dedicated.ts';
import { dedicatedTo } from './dedicated.ts';
import { ClosedError, NoPrimaryError } from './errors.ts';
import { callJob, writeJob } from './jobs.ts';
import type { ManualFailover, ManualFailoverOptions } from './manual-failover.ts';
import { askManagers, askRubyManagers, checkTarget, checkTimeout } from './manual-failover.ts';
import type { RedisFailoverOptions, ResolvedOptions } from './options.ts';
import { resolveClientOptions } from './options.ts';
import { routedClient } from './routed-client.ts';
import { Router } from './router.ts';
import { show } from './show.ts';
import type { BrokenRule, Picture, Reign } from './view.ts';
import { ViewFollower } from './view-follower.ts';

/** How long the gem's clients go without news before they no longer trust what they know. */
const rubyViewMs = 9_000;

/** @internal for tests and chaos */
export interface ClientHooks {
  readonly broken?: readonly BrokenRule[] | undefined;
}

/** Options of one call. */
export interface WriteOptions {
  /**
   * Gives the call up when it aborts. A command that was sent already may be applied all the same.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A client of one Redis primary and its replicas. It follows the primary when the managers move it.
 * Made by `RedisFailover.connect`.
 */
export class RedisFailover<Client extends object> implements AsyncDisposable {
  /**
   * The client for commands. It has the methods of the driver's client. Commands that Redis calls
   * read-only go to a replica (see the option `reads`), all others to the primary.
   *
   * A call to the primary resolves only if that was still the primary when the reply arrived. A
   * call rejects with:
   *
   * - the error that Redis answers;
   * - NoPrimaryError: nothing was applied within `maxWait`;
   * - OutcomeUnknownError: it may have been applied;
   * - NotRoutableError: it needs a connection of your own, see `dedicated`;
   * - NodeRefusedError: a wrong password, or missing rights;
   * - ClosedError.
   *
   * Not promised:
   *
   * - A read may not see what this client wrote before: replicas lag behind.
   * - An acknowledged write may be lost with the primary, because replication is asynchronous. See
   *   `min-replicas-to-write`, and WAIT inside `write`.
   * - Two calls, one after the other, may go to different primaries.
   */
  readonly redis: Client;
  readonly #options: ResolvedOptions<Client>;
  readonly #zk: ZooKeeper;
  readonly #paths: Paths;
  readonly #view: ViewFollower;
  readonly #connections: Connections<Client>;
  readonly #router: Router<Client>;
  readonly #teller: ChangeTeller;
  readonly #closed = new AbortController();
  #closing: Promise<void> | undefined;

  private constructor(
    options: ResolvedOptions<Client>,
    zk: ZooKeeper,
    clock: Clock,
    { broken }: ClientHooks,
  ) {
    const { redis: driver, safeMode, root } = options;
    this.#options = options;
    this.#zk = zk;
    this.#paths = pathsBelow(root);
    this.#view = new ViewFollower(zk, this.#paths, clock, { rubyViewMs, safeMode, broken });
    this.#connections = new Connections(driver, {
      ...{ ...options, clock },
      runIdOf: (reign) => this.#view.runIdOf(reign),
      isGemLeading: () =>
        gemManagers(zk, this.#paths).then(
          (managers) => managers.length > 0,
          () => false, // An error, such as a denied ACL, counts as no. Then the client waits for our managers.
        ),
    });
    this.#router = new Router(this.#view, this.#connections, options);
    this.#teller = new ChangeTeller(() => this.#view.picture);
    let warm: Reign | undefined;
    this.#view.onChange(() => {
      const reign = this.#view.reign;
      this.#connections.keep(this.#view.picture, reign);
      this.#connections.abandon((each) => this.#view.isHopeless(each));
      this.#teller.look();
      if (reign === undefined || reign === warm) return;
      // Connects in advance, so that the first write of a term need not wait.
      warm = reign;
      this.#connections.primary(reign).then(
        ({ establishedMs }) => this.#view.expectConfirmation(establishedMs),
        () => {}, // The next write gets the error.
      );
    });
    this.redis = routedClient({
      driver,
      pinned: false,
      perform: (call, signal, tour) => this.#router.perform(callJob(call, tour), signal),
      isReady: () => this.#view.usable() !== undefined,
    });
  }

  /**
   * Connects to ZooKeeper, and resolves when it has answered, even if there is no primary yet. It
   * does not wait for a connection to Redis.
   *
   * Rejects with:
   *
   * - InvalidOptionError: an option is unknown, missing or out of range;
   * - NoPrimaryError: ZooKeeper has not answered within `maxWait`;
   * - an error of ZooKeeper that no waiting cures, such as a denied ACL;
   * - the reason of `signal`.
   */
  static async connect<Client extends object>(
    options: RedisFailoverOptions<Client>,
    /** @internal */
    hooks: ClientHooks = {},
  ): Promise<RedisFailover<Client>> {
    const resolved = resolveClientOptions(options);
    const { zookeeper } = resolved;
    const { signal, onChange, clock = systemClock } = options;
    signal?.throwIfAborted();
    const zk = zookeeper instanceof ZooKeeper ? zookeeper : open(zookeeper);
    const failover = new RedisFailover(resolved, zk, clock, hooks);
    if (onChange !== undefined) failover.onChange(onChange);
    try {
      using bound = failover.#router.bound(signal);
      await failover.#view.waitUntilRead(bound);
      return failover;
    } catch (error) {
      const why = failover.#view.explain();
      await failover.close();
      if (!(error instanceof TimeUp)) throw error;
      const waited = formatDuration(resolved.maxWaitMs);
      throw new NoPrimaryError(`nothing was heard within ${waited}: ${why}`, { cause: error });
    }
  }

  /** The roles of the nodes, as ZooKeeper last said. From memory: reading it asks no server. */
  get current(): Picture {
    return this.#view.picture;
  }

  /**
   * Calls `listener` with `current` after every change. Changes in quick succession may be one
   * call, with the latest state. An error that it throws is ignored.
   * @returns stops it
   */
  onChange(listener: ChangeListener): () => void {
    if (typeof listener !== 'function') {
      throw new InvalidOptionError(`onChange takes a function, not ${show(listener)}`);
    }
    return this.#teller.add(listener);
  }

  /**
   * Calls `work` with a client for the primary of one term. All its commands go over one
   * connection. When the promise resolves, the primary of `at.term` has acknowledged every command
   * that `work` waited for. `work` is called again only if surely nothing of it was applied.
   *
   * Rejects like the calls of `redis`, and with:
   *
   * - InvalidOptionError: `work` is no function;
   * - an error that `work` throws, unchanged;
   * - the reason of `signal`, if nothing was sent before.
   *
   * @param work may use the client only until its own promise is settled
   * @returns the result of `work`
   */
  write<Value>(
    work: (redis: Client, at: Reign) => Value | Promise<Value>,
    { signal }: WriteOptions = {},
  ): Promise<Value> {
    if (typeof work !== 'function') {
      return Promise.reject(
        new InvalidOptionError(
          `write takes a function such as (redis) => redis.set('k', 'v'), not ${show(work)}`,
        ),
      );
    }
    return this.#router.perform(writeJob(this.#options.redis, work), signal);
  }

  /**
   * A connection of your own, for commands that cannot be routed: subscriptions, blocking commands,
   * WATCH. It is closed when the primary is moved, or the replica is no replica any more. Then ask
   * for another.
   * @param role default `primary`; `replica`: a random one
   * @returns rejects with InvalidOptionError, NoPrimaryError after `maxWait`, NodeRefusedError,
   *   ClosedError, and with the reason of `signal`
   */
  async dedicated(
    role: 'primary' | 'replica' = 'primary',
    { signal }: WriteOptions = {},
  ): Promise<Dedicated<Client>> {
    if (role !== 'primary' && role !== 'replica') {
      throw new InvalidOptionError(`dedicated takes 'primary' or 'replica', not ${show(role)}`);
    }
    const at = await this.#router.connectAlone(role, signal);
    const { connection, reign } = at;
    const ended = new AbortController();
    const stands = () =>
      reign === undefined
        ? this.#view.picture.replicas.includes(connection.address)
        : this.#view.reign === reign;
    const stop = this.#view.onChange(() => {
      if (!stands()) dedicated.close();
    });
    const dedicated: Dedicated<Client> = dedicatedTo(connection, reign?.term, stop, ended);
    const onClosed = () => dedicated.close();
    this.#closed.signal.addEventListener('abort', onClosed, { once: true });
    ended.signal.addEventListener(
      'abort',
      () => this.#closed.signal.removeEventListener('abort', onClosed),
      { once: true },
    );
    connection.onEnd(onClosed);
    if (!stands() || !connection.isOpen || this.#closed.signal.aborted) dedicated.close();
    return dedicated;
  }

  /**
   * Asks the managers to make another node the primary, and waits until they have. Rejects with:
   *
   * - InvalidOptionError: `target` or an option is wrong;
   * - FailoverRefusedError: the managers refuse, with the reason as message;
   * - NoManagerError: no manager began it in time, and the request is withdrawn;
   * - OutcomeUnknownError: it was begun, or may have been;
   * - ClosedError;
   * - the reason of `signal`.
   *
   * @param target a replica, or the primary itself (then it resolves at once). Left out: the best
   *   replica
   */
  async manualFailover(
    target?: HostAndPort,
    options: ManualFailoverOptions = {},
  ): Promise<ManualFailover> {
    const node = checkTarget(target);
    const timeoutMs = checkTimeout(options);
    using bound = this.#router.bound(options.signal, 2 ** 31 - 1);
    if (this.#view.trouble !== undefined) throw this.#view.trouble;
    if (this.#view.picture.term !== undefined) {
      const { onProgress } = options;
      const asked = { signal: bound.signal, timeoutMs, onProgress };
      return await askManagers(this.#zk, this.#paths, node, asked);
    }
    using timed = this.#router.bound(options.signal, timeoutMs);
    return await askRubyManagers(this.#zk, this.#paths, node, this.#view, timed, timeoutMs);
  }

  /**
   * Closes the client and its connections; a ZooKeeper client that you passed in stays open. Calls
   * that wait reject with ClosedError, commands that were sent with OutcomeUnknownError.
   * Idempotent, never rejects.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const reason = new ClosedError();
    this.#router.close(reason);
    this.#closed.abort(reason);
    this.#teller.close();
    this.#connections.close();
    await this.#view.close();
    if (!(this.#options.zookeeper instanceof ZooKeeper)) await this.#zk.close();
  }
}

/** @throws InvalidOptionError */
function open(url: string): ZooKeeper {
  try {
    return createClient(url);
  } catch (error) {
    throw new InvalidOptionError(`zookeeper: ${(error as Error).message}`);
  }
}
