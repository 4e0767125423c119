import type { Timer } from '@incumbent/zookeeper';
import { parseConnectionString, SessionError } from '@incumbent/zookeeper';
import type { Term } from 'incumbent';
import { createElection, StoreUnsuitableError } from 'incumbent';
import type { ZooKeeperGuard } from 'incumbent/zookeeper';
import { zookeeper } from 'incumbent/zookeeper';
import type { Paths, PrimaryRecord } from '../layout.ts';
import { decodePrimary, pathsBelow } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import { formatNodeAddress } from '../node-address.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';
import type { ManagerEvent, ManagerStatus, Trouble } from './events.ts';
import type { ManagerHooks } from './hooks.ts';
import type { MoveMemory } from './move-world.ts';
import { newMemory } from './move-world.ts';
import { shortLists } from './node-lists.ts';
import type { NodeSight } from './node-watcher.ts';
import { NodeWatcher } from './node-watcher.ts';
import type { ManagerOptions, ResolvedOptions } from './options.ts';
import { resolveOptions } from './options.ts';
import { reign } from './reign.ts';
import { ReportBoard, Reporter, reportOf } from './reports.ts';
import type { Verdict } from './strategies.ts';
import type { Surroundings } from './surroundings.ts';
import { machine } from './surroundings.ts';
import { troubleOf } from './trouble.ts';
import { Wake } from './wake.ts';

/**
 * Watches a set of Redis nodes. The managers of a set elect one of themselves, and the elected one
 * keeps exactly one node the primary and the others its replicas.
 */
export class NodeManager {
  readonly #options: ResolvedOptions;
  readonly #hooks: ManagerHooks;
  readonly #surroundings: Surroundings;
  readonly #paths: Paths;
  readonly #sights = new Map<NodeAddress, NodeSight>();
  #state: ManagerStatus['state'] = 'starting';
  #token: bigint | undefined;
  #zookeeper = 'connecting';
  #record: PrimaryRecord | undefined;
  #verdicts: ReadonlyMap<NodeAddress, Verdict> = new Map();
  #trouble: Trouble | undefined;
  #quarantined: readonly NodeAddress[] = [];
  #board: ReportBoard | undefined;
  readonly #moves = { done: 0, failed: 0 };
  readonly #memory: MoveMemory = newMemory();

  /**
   * Connects to nothing before `run`.
   * @param hooks for this package's own tests
   * @param surroundings for a simulation
   * @throws InvalidOptionError for an option that is unknown, missing or out of range
   */
  constructor(
    options: ManagerOptions,
    hooks: ManagerHooks = {},
    surroundings: Surroundings = machine,
  ) {
    this.#surroundings = surroundings;
    this.#options = resolveOptions(options);
    this.#hooks = hooks;
    this.#paths = pathsBelow(this.#options.root);
  }

  /** Unique among the managers; see the option `id`. */
  get id(): string {
    return this.#options.id;
  }

  /** The state at this moment, from memory: reading it asks no server. */
  get status(): ManagerStatus {
    const { id, nodes, requiredNodeManagers } = this.#options;
    const isLeading = this.#state === 'leading';
    return {
      ...{ id, state: this.#state, zookeeper: this.#zookeeper },
      token: isLeading ? this.#token : undefined,
      primary: this.#record?.primary,
      term: this.#record?.term,
      nodes: nodes.map((address) => ({
        ...this.#sightOf(address),
        judged: isLeading ? this.#verdicts.get(address)?.state : undefined,
      })),
      managers: this.#board?.current().size ?? 0,
      requiredManagers: requiredNodeManagers,
      trouble: this.#trouble,
      quarantined: isLeading ? this.#quarantined : [],
      shortLists: shortLists(this.#board?.current() ?? new Map()),
      moves: { ...this.#moves },
    };
  }

  /**
   * Runs until `signal` aborts. Resolves when the session and all connections are closed. While
   * ZooKeeper cannot be reached, it waits and tries again.
   * @returns rejects with an error that no waiting cures: a refused login to ZooKeeper, or
   *   StoreUnsuitableError
   */
  async run(signal: AbortSignal): Promise<void> {
    const { zookeeper: url, sessionTimeoutMs, zookeeperOptions, id, nodes } = this.#options;
    const { clock, openZooKeeper } = this.#surroundings;
    const zk = openZooKeeper(url, { ...zookeeperOptions, sessionTimeoutMs });
    const stopTelling = zk.onState(({ state }) => {
      this.#zookeeper = state;
      this.#tell({ type: 'zookeeper', state });
      const isAway = this.#trouble?.code === 'ZOOKEEPER_AWAY';
      if (state === 'connected' && isAway) this.#show({ trouble: undefined });
    });
    this.#tell({ type: 'started', id, nodes });
    // The client waits for ever, but an operator who misspelt the address wants to read of it in
    // the log.
    const hurry: Timer = clock.setTimer(() => this.#missZooKeeper(zk), 1_000);
    try {
      while (!signal.aborted) await this.#workUntilTrouble(zk, signal);
    } finally {
      hurry.cancel();
      this.#state = 'stopped';
      stopTelling();
      await zk.close();
      this.#zookeeper = 'closed';
      this.#tell({ type: 'stopped' });
    }
  }

  #missZooKeeper(zk: ZooKeeperClient): void {
    if (zk.session !== undefined) return;
    const { hosts } = parseConnectionString(this.#options.zookeeper);
    const where = hosts.map(formatNodeAddress).join(', ');
    const message = `no session with ZooKeeper yet (${where}): is the address right, and does it run?`;
    this.#show({ trouble: { code: 'ZOOKEEPER_AWAY', message } });
  }

  /** If waiting may cure the error, the work begins again a second later. */
  async #workUntilTrouble(zk: ZooKeeperClient, signal: AbortSignal): Promise<void> {
    try {
      await zk.connected({ signal });
      await this.#work(zk, signal);
    } catch (error) {
      if (signal.aborted) return;
      // A session may end at any moment, even right after `connected` resolved.
      const isLost =
        error instanceof SessionError ||
        (error instanceof StoreUnsuitableError && zk.session === undefined);
      const isFinal = zk.state === 'auth-failed' || zk.state === 'closed';
      const { retryable } = error as { readonly retryable?: unknown };
      if (isFinal || !(retryable === true || isLost)) throw error;
      this.#state = 'starting';
      this.#show({ trouble: { code: 'ZOOKEEPER_AWAY', message: (error as Error).message } });
      await new Wake(this.#surroundings.clock).wait(1_000, signal);
    }
  }

  async #work(zk: ZooKeeperClient, signal: AbortSignal): Promise<void> {
    await zk.ensurePath(this.#paths.reports, { signal });
    await zk.ensurePath(this.#paths.requests, { signal });
    const { clock, forElection, openElection = createElection } = this.#surroundings;
    const election = openElection({
      ...forElection,
      name: this.#paths.election,
      backend: zookeeper(zk, { root: this.#paths.root }),
      candidate: { id: this.#options.id },
      // The state of the client tells already when ZooKeeper is away, and when it is back: see
      // #listen.
      onTrouble: () => {},
    });
    const wake = new Wake(clock);
    const onTrouble = (error: Error) => this.#show({ trouble: troubleOf(error) });
    const reporter = new Reporter(zk, this.#paths, this.#options.id, onTrouble, clock);
    const board = new ReportBoard(zk, this.#paths, () => wake.call(), onTrouble);
    this.#board = board;
    const watchers = this.#watch(reporter, wake);
    const stopListening = this.#listen(zk, wake, signal);
    this.#state = 'waiting';
    try {
      while (!signal.aborted) {
        await election.lead((term) => this.#lead(zk, board, wake, term), { signal });
      }
    } finally {
      await election.close();
      for (const watcher of watchers) watcher.close();
      stopListening();
      board.close();
      await reporter.close();
    }
  }

  async #lead(
    zk: ZooKeeperClient,
    board: ReportBoard,
    wake: Wake,
    term: Term<ZooKeeperGuard>,
  ): Promise<void> {
    const { token } = term;
    this.#state = 'leading';
    this.#token = token;
    this.#tell({ type: 'elected', token });
    try {
      await reign(
        {
          ...{ options: this.#options, hooks: this.#hooks, zk, paths: this.#paths, board, wake },
          sightOf: (node) => this.#sightOf(node),
          tell: (event) => this.#tell(event),
          show: (shown) => this.#show(shown),
          ...{ clock: this.#surroundings.clock, openNode: this.#surroundings.openNode },
          readTail: this.#surroundings.readTail,
          memory: this.#memory,
        },
        term,
      );
    } finally {
      this.#state = 'waiting';
      // The trouble may go on, but from now on another manager has to report it.
      this.#trouble = undefined;
      const { reason } = term.signal;
      this.#tell({ type: 'ousted', token, reason: reason?.reason ?? 'another manager shall try' });
    }
  }

  #watch(reporter: Reporter, wake: Wake): readonly NodeWatcher[] {
    const { access, maxFailures, checkEveryMs, nodeTimeoutMs, id, nodes } = this.#options;
    const name = `incumbent-redis-watch:${id}`;
    const { clock, openNode } = this.#surroundings;
    return nodes.map((address) => {
      const reach = this.#hooks.reach?.(address);
      const settings = { ...access, maxFailures, checkEveryMs, timeoutMs: nodeTimeoutMs, name };
      return new NodeWatcher(address, { ...settings, reach, clock, openNode }, (sight) => {
        const before = this.#sights.get(address);
        this.#sights.set(address, sight);
        if (before?.state !== sight.state || before.failures !== sight.failures) {
          this.#tell({ type: 'sight', sight });
        }
        reporter.publish(reportOf(this.#sights.values()));
        wake.call();
      });
    });
  }

  /**
   * Wakes the manager when a request arrives. Without this it would see the request only at its
   * next look.
   */
  #listen(zk: ZooKeeperClient, wake: Wake, signal: AbortSignal): () => void {
    const stop = new AbortController();
    const { signal: ends } = stop;
    signal.addEventListener('abort', () => stop.abort(), { once: true });
    const listen = async <T>(changes: AsyncIterable<T>, onChange: (change: T) => void) => {
      try {
        for await (const change of changes) onChange(change);
      } catch {
        // The next look finds the change all the same, only later.
      }
    };
    const options = { signal: ends };
    void listen(zk.followChildren(this.#paths.requests, options), () => wake.call());
    void listen(zk.follow(this.#paths.manualFailover, options), () => wake.call());
    void listen(zk.follow(this.#paths.primary, options), (reply) => this.#note(reply?.text));
    return () => stop.abort();
  }

  /** Takes the record for the status. The elected manager reads it again before it decides. */
  #note(text: string | undefined): void {
    try {
      const record = text === undefined ? undefined : decodePrimary(this.#paths.primary, text);
      this.#show({ record });
    } catch (error) {
      this.#show({ trouble: troubleOf(error) });
    }
  }

  #sightOf(address: NodeAddress): NodeSight {
    return (
      this.#sights.get(address) ?? {
        ...{ address, state: 'unknown', latencyMs: undefined, failures: 0, error: undefined },
      }
    );
  }

  #show(shown: {
    readonly record?: PrimaryRecord | undefined;
    readonly trouble?: Trouble | undefined;
    readonly verdicts?: ReadonlyMap<NodeAddress, Verdict>;
    readonly quarantined?: readonly NodeAddress[];
  }): void {
    if (shown.quarantined !== undefined) this.#quarantined = shown.quarantined;
    if ('record' in shown) this.#showRecord(shown.record);
    if (shown.verdicts !== undefined) this.#verdicts = shown.verdicts;
    if (!('trouble' in shown)) return;
    const [before, trouble] = [this.#trouble, shown.trouble];
    this.#trouble = trouble;
    if (trouble !== undefined && trouble.message !== before?.message) {
      this.#tell({ type: 'trouble', trouble });
    }
    if (trouble === undefined && before !== undefined) this.#tell({ type: 'recovered' });
  }

  #showRecord(record: PrimaryRecord | undefined): void {
    const before = this.#record;
    // Two reads are under way side by side, and the older record may arrive last.
    if (record !== undefined && before !== undefined && record.term < before.term) return;
    this.#record = record;
    if (record === undefined) return;
    const { primary, term } = record;
    if (primary === before?.primary && term === before.term) return;
    this.#tell({ type: 'primary', primary, term });
  }

  #tell(event: ManagerEvent): void {
    if (event.type === 'moved') this.#moves.done += 1;
    if (event.type === 'move-failed') this.#moves.failed += 1;
    try {
      this.#options.onEvent(event);
    } catch {
      // The listener has an error of its own. A failover does not wait for that.
    }
  }
}
