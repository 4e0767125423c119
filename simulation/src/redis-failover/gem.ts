/**
 * A manager of the Ruby gem redis_failover 1.0, as far as it touches ZooKeeper and Redis, with its
 * mistakes. It looks at its lock before a pause and acts after it. It writes without a version, and
 * makes a replica of whatever comes back. Times are the gem's times its pace.
 */
import type { Random } from '../harness/random.ts';
import { GemNode, NodeUnavailable } from './gem-node.ts';
import type { Seat } from './process.ts';
import { Process } from './process.ts';
import type { RedisFailoverSimulation } from './simulation.ts';
import type { ZooKeeperFace } from './zookeeper.ts';

const retryMs = 5_000;
const checkEveryMs = 5_000;
const watchEveryMs = 2_000;
const mostOperationMs = 5_000;
/** In a row, after which the lock is given up. */
const mostPromotions = 3;
/** Seconds: only a latency that differs by more is published. */
const latencyThreshold = 0.5;

export interface GemPace {
  /** Of the gem's own times. */
  readonly pace: number;
  readonly maxFailures: number;
  readonly sessionTimeoutMs: number;
}

interface State {
  readonly available: Readonly<Record<string, number>>;
  readonly unavailable: readonly string[];
}

/** The reports of the managers on one node. */
interface Snapshot {
  readonly viewable: Map<string, number>;
  readonly unviewable: string[];
}

/** Its own complaints, which the gem's own code handles by a retry. */
class LockError extends Error {}
class NoMasterError extends Error {}
/** `NODE_DISCOVERY_ERRORS` */
class DiscoveryError extends Error {}
/** `exit` in the middle of something. */
class Stopped extends Error {}

export function gemLockBelow(root: string): string {
  return `/_zklocking/${`${root}/master_redis_node_manager_lock`.replaceAll('/', '__')}`;
}

export class GemProcess extends Process {
  readonly #zk: ZooKeeperFace;
  readonly #pace: GemPace;
  readonly #nodes: ReadonlyMap<string, GemNode>;
  readonly #lockRoot: string;
  readonly #ending = new AbortController();
  #lockPath: string | undefined;
  #isLocked = false;
  #isManaging = false;
  #master: string | undefined;
  #slaves: string[] = [];
  #unavailable: string[] = [];
  #seen: Map<string, number> = new Map();
  #unseen: string[] = [];
  #attempts = 0;
  /** Counts what `reset` ends: watchers of before say nothing any more. */
  #epoch = 0;
  /** The gem's monitor: cycles, reports and requests one after the other. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(sim: RedisFailoverSimulation, seat: Seat, pace: GemPace, random: Random) {
    super(sim, seat);
    const { redis, world, root } = sim;
    const { host } = this;
    this.#pace = pace;
    this.#lockRoot = gemLockBelow(root);
    this.#zk = this.connectZooKeeper(pace.sessionTimeoutMs);
    const place = { redis, world, host, process: this, mostMs: mostOperationMs * pace.pace };
    // Each manager has a list of its own.
    const addresses = random.shuffle(sim.nodes.map(({ addresses: [own] }) => own));
    this.#nodes = new Map(addresses.map((address) => [address, new GemNode(address, place)]));
    this.#run().catch((error: unknown) => {
      if (error instanceof Stopped || !this.alive) return;
      world.fail('errors', `${this.name}: ${(error as Error).stack}`);
    });
  }

  get isManaging(): boolean {
    return this.#isManaging && this.alive;
  }

  isOfSession(id: bigint): boolean {
    return this.#zk.session?.id === id;
  }

  /** TERM: the lock is given back, and the session is left to its timeout. */
  async stop(): Promise<void> {
    this.#note('is told to end');
    this.#ending.abort();
    this.#isManaging = false;
    await this.#unlock();
    this.crash();
  }

  // --- `start` ---

  async #run(): Promise<void> {
    const { manualFailover } = this.#paths;
    this.#watchRequests(manualFailover).catch(() => {});
    for (;;) {
      try {
        await this.#zk.connected();
        await this.#createPath(this.sim.root, null);
        await this.#createPath(this.#paths.states, null);
        await this.#spawnWatchers();
        await this.#lead();
      } catch (error) {
        if (error instanceof Stopped) throw error;
        this.#note('starts again', (error as Error).message);
      }
      this.#reset();
      await this.#sleep(retryMs);
    }
  }

  #reset(): void {
    this.#isManaging = false;
    this.#attempts = 0;
    this.#epoch += 1;
  }

  get #paths() {
    const { root } = this.sim;
    const states = `${root}/manager_node_state`;
    return {
      nodes: `${root}/nodes`,
      states,
      state: `${states}/${this.name}`,
      manualFailover: `${root}/manual_failover`,
    };
  }

  // --- what it sees ---

  async #spawnWatchers(): Promise<void> {
    await this.#ignoring('NO_NODE', this.#zk.delete(this.#paths.state));
    this.#seen = new Map();
    this.#unseen = [];
    this.#epoch += 1;
    const epoch = this.#epoch;
    for (const node of this.#nodes.values()) {
      this.#watch(node, epoch).catch((error: unknown) => {
        if (!(error instanceof Stopped)) throw error;
      });
    }
  }

  async #watch(node: GemNode, epoch: number): Promise<void> {
    let failures = 0;
    while (this.#epoch === epoch) {
      await this.#sleep(watchEveryMs);
      const beganMs = this.clock.monotonicMs();
      try {
        await node.check();
        failures = 0;
        const latency = (this.clock.monotonicMs() - beganMs) / 1_000;
        await this.#report(node.address, latency, epoch);
      } catch (error) {
        if (!(error instanceof NodeUnavailable)) throw error;
        failures += 1;
        if (failures < this.#pace.maxFailures) continue;
        failures = 0;
        await this.#report(node.address, undefined, epoch);
      }
    }
  }

  /** `update_current_state`; what goes wrong is undone, and said again later. */
  #report(address: string, latency: number | undefined, epoch: number): Promise<void> {
    return this.#exclusively(async () => {
      if (this.#epoch !== epoch) return;
      const [seen, unseen] = [new Map(this.#seen), [...this.#unseen]];
      if (latency === undefined) {
        if (unseen.includes(address)) return;
        this.#unseen.push(address);
        this.#seen.delete(address);
      } else {
        const last = seen.get(address);
        if (last !== undefined && Math.abs(latency - last) <= latencyThreshold) return;
        this.#seen.set(address, latency);
        this.#unseen = unseen.filter((each) => each !== address);
      }
      const state: State = {
        available: Object.fromEntries(this.#seen),
        unavailable: this.#unseen,
      };
      try {
        await this.#writeState(this.#paths.state, JSON.stringify(state), true);
      } catch (error) {
        if (error instanceof Stopped) throw error;
        this.#seen = seen;
        this.#unseen = unseen;
      }
    });
  }

  async #snapshots(): Promise<Map<string, Snapshot>> {
    const snapshots = new Map<string, Snapshot>();
    const of = (address: string): Snapshot => {
      const snapshot = snapshots.get(address) ?? {
        viewable: new Map<string, number>(),
        unviewable: [],
      };
      snapshots.set(address, snapshot);
      return snapshot;
    };
    const { states } = this.#paths;
    const { children } = await this.#zk.getChildren(states);
    for (const child of children) {
      const state = await this.#ignoring('NO_NODE', this.#zk.get(`${states}/${child}`));
      if (state === undefined) continue;
      const { available, unavailable } = JSON.parse(state.text) as State;
      for (const [address, latency] of Object.entries(available)) {
        of(address).viewable.set(child, latency);
      }
      for (const address of unavailable) of(address).unviewable.push(child);
    }
    return snapshots;
  }

  // --- the lock ---

  async #lead(): Promise<void> {
    try {
      await this.#lock();
      this.#expectRunning();
      await this.#assertLock();
      this.#isManaging = true;
      this.#note('has the lock');
      this.sim.coverage.count('a manager of the gem leads');
      await this.#manage();
    } finally {
      await this.#unlock();
    }
  }

  async #lock(): Promise<void> {
    if (this.#isLocked) return;
    for (;;) {
      const options = { ephemeral: true, sequential: true };
      const created = await this.#ignoring(
        'NO_NODE',
        this.#zk.create(`${this.#lockRoot}/ex`, '', options),
      );
      if (created !== undefined) {
        this.#lockPath = created.path;
        break;
      }
      await this.#zk.ensurePath(this.#lockRoot);
    }
    const { session } = this.#zk;
    const places = await this.#places();
    const own = places.indexOf(this.#lockPath.slice(this.#lockRoot.length + 1));
    // It goes on when the one before it is gone, and does not look whether it is the first then.
    if (own > 0) await this.#untilGone(`${this.#lockRoot}/${places[own - 1]}`, session?.id);
    this.#isLocked = true;
  }

  async #untilGone(path: string, session: bigint | undefined): Promise<void> {
    for (;;) {
      this.#expectRunning();
      const watch = await this.#zk.watch(path);
      if (watch.value === undefined) return;
      await watch.changed;
      if (this.#zk.session?.id !== session) throw new LockError('its session was interrupted');
    }
  }

  async #places(): Promise<string[]> {
    const { children } = await this.#zk.getChildren(this.#lockRoot);
    return [...children].sort((a, b) => numberIn(a) - numberIn(b));
  }

  async #assertLock(): Promise<void> {
    if (!this.#isLocked || this.#lockPath === undefined) throw new LockError('no lock');
    if (this.#zk.state !== 'connected') throw new LockError('not connected');
    const [first] = await this.#places();
    if (`${this.#lockRoot}/${first}` !== this.#lockPath) throw new LockError('lost its lock');
  }

  async #unlock(): Promise<void> {
    const path = this.#lockPath;
    if (!this.#isLocked || path === undefined) return;
    this.#isLocked = false;
    this.#lockPath = undefined;
    await this.#zk.delete(path).catch(() => {});
    await this.#zk.delete(this.#lockRoot).catch(() => {});
  }

  // --- `manage_nodes` ---

  async #manage(): Promise<void> {
    await this.#discover();
    await this.#redirect(this.#master);
    for (;;) {
      await this.#assertLock();
      await this.#sleep(checkEveryMs);
      await this.#exclusively(() => this.#cycle());
    }
  }

  async #cycle(): Promise<void> {
    const snapshots = await this.#snapshots();
    const before = this.#master;
    const first = (address: string) => (address === before ? 0 : 1);
    for (const address of [...snapshots.keys()].sort((a, b) => first(a) - first(b))) {
      if (this.#master !== before && address === this.#master) continue;
      try {
        await this.#update(address, snapshots);
      } catch (error) {
        if (!(error instanceof NodeUnavailable)) throw error;
      }
    }
    await this.#writeNodes();
    if (this.#master !== undefined) return;
    this.#attempts += 1;
    if (this.#attempts > mostPromotions) throw new NoMasterError('nobody can be promoted');
  }

  /** `determine_state` of the majority, and what follows from it. */
  async #update(address: string, snapshots: Map<string, Snapshot>): Promise<void> {
    const { viewable = new Map(), unviewable = [] } = snapshots.get(address) ?? {};
    const node = this.#node(address);
    if (unviewable.length > viewable.size) return this.#handleUnavailable(address, snapshots);
    if (!(await node.isSyncing())) return this.#handleAvailable(address, snapshots);
    await this.#reconcile(address);
    if ((await node.isSyncing()) && (await node.prohibitsStaleReads())) this.#setAway(address);
    else await this.#handleAvailable(address, snapshots);
  }

  async #handleUnavailable(address: string, snapshots: Map<string, Snapshot>): Promise<void> {
    if (this.#unavailable.includes(address)) return;
    this.#unavailable.push(address);
    if (address === this.#master) await this.#promote(snapshots, undefined);
    else this.#slaves = without(this.#slaves, address);
  }

  async #handleAvailable(address: string, snapshots: Map<string, Snapshot>): Promise<void> {
    await this.#reconcile(address);
    const master = this.#master;
    if (master === address) return;
    if (master !== undefined && this.#slaves.includes(address)) return;
    if (master === undefined) await this.#promote(snapshots, address);
    else {
      await this.#node(address).makeSlave(master);
      this.#slaves.push(address);
    }
    this.#unavailable = without(this.#unavailable, address);
  }

  async #promote(snapshots: Map<string, Snapshot>, wanted: string | undefined): Promise<void> {
    await this.#ignoring('NO_NODE', this.#zk.delete(this.#paths.nodes));
    this.#master = undefined;
    const candidate =
      wanted ?? this.#candidateOf(snapshots) ?? (await this.#mostElectable()) ?? undefined;
    if (candidate === undefined) return;
    this.#slaves = without(this.#slaves, candidate);
    this.#unavailable = without(this.#unavailable, candidate);
    await this.#redirect(candidate);
    await this.#node(candidate).makeMaster();
    this.#master = candidate;
    await this.#writeNodes();
    this.#attempts = 0;
    this.#note('promotes', candidate);
    this.sim.coverage.count('a manager of the gem promotes a node');
  }

  /** Seen by this manager, and by all that report; of these the one with the lowest mean latency. */
  #candidateOf(snapshots: Map<string, Snapshot>): string | undefined {
    let best: { readonly address: string; readonly latency: number } | undefined;
    for (const [address, { viewable, unviewable }] of snapshots) {
      if (!viewable.has(this.name) || unviewable.length > 0) continue;
      const latency = [...viewable.values()].reduce((sum, each) => sum + each, 0) / viewable.size;
      if (best === undefined || latency < best.latency) best = { address, latency };
    }
    return best?.address;
  }

  async #mostElectable(): Promise<string | undefined> {
    let best: { readonly address: string; readonly score: number } | undefined;
    for (const [address, node] of this.#nodes) {
      const score = await node.electability().catch(() => -1);
      if (score >= 0 && (best === undefined || score < best.score)) best = { address, score };
    }
    return best?.address;
  }

  async #reconcile(address: string): Promise<void> {
    const master = this.#master;
    const node = this.#node(address);
    if (master === address) await node.makeMaster();
    else if (master !== undefined) await node.makeSlave(master);
  }

  async #redirect(master: string | undefined): Promise<void> {
    if (master === undefined) return;
    for (const address of [...this.#slaves]) {
      try {
        await this.#node(address).makeSlave(master);
      } catch (error) {
        if (!(error instanceof NodeUnavailable)) throw error;
        this.#setAway(address);
      }
    }
  }

  #setAway(address: string): void {
    this.#slaves = without(this.#slaves, address);
    if (!this.#unavailable.includes(address)) this.#unavailable.push(address);
  }

  // --- who is the master at the start ---

  async #discover(): Promise<void> {
    for (;;) {
      try {
        await this.#exclusively(async () => {
          this.#slaves = [];
          this.#unavailable = [];
          this.#master = (await this.#existingMaster()) ?? (await this.#guessMaster());
          this.#slaves = [...this.#nodes.keys()].filter((each) => each !== this.#master);
        });
        this.#note('goes by', this.#master);
        return;
      } catch (error) {
        if (!(error instanceof DiscoveryError || error instanceof NodeUnavailable)) throw error;
        this.#note('finds no master', error.message);
        await this.#sleep(retryMs);
      }
    }
  }

  async #existingMaster(): Promise<string | undefined> {
    const found = await this.#ignoring('NO_NODE', this.#zk.get(this.#paths.nodes));
    if (found === undefined) return undefined;
    const { master } = JSON.parse(found.text) as { readonly master: string | null };
    if (master === null) return undefined;
    const isMaster = await this.#node(master)
      .isMaster()
      .catch(() => true);
    if (!isMaster) throw new DiscoveryError(`${master} is a slave now`);
    return master;
  }

  async #guessMaster(): Promise<string> {
    const masters: string[] = [];
    for (const [address, node] of this.#nodes) if (await node.isMaster()) masters.push(address);
    const [only] = masters;
    if (only === undefined || masters.length > 1) {
      throw new DiscoveryError(`${masters.length} masters`);
    }
    return only;
  }

  // --- requests ---

  async #watchRequests(path: string): Promise<void> {
    let isFirst = true;
    for await (const _ of this.#zk.follow(path, { signal: this.#ending.signal })) {
      if (!isFirst) await this.#exclusively(() => this.#obey(path)).catch(() => {});
      isFirst = false;
    }
  }

  async #obey(path: string): Promise<void> {
    if (!this.#isManaging) return;
    await this.#assertLock();
    const { text } = await this.#zk.get(path);
    if (text === '') return;
    const snapshots = await this.#snapshots();
    const wanted = text === 'ANY_SLAVE' ? this.#candidateOf(snapshots) : text;
    if (wanted === undefined || wanted === this.#master) return;
    await this.#node(wanted).check();
    if (this.#master !== undefined) this.#slaves.push(this.#master);
    this.#slaves = without(this.#slaves, wanted);
    await this.#promote(snapshots, wanted);
  }

  // --- the ground ---

  #node(address: string): GemNode {
    this.#expectRunning();
    const node = this.#nodes.get(address);
    if (node === undefined) throw new NodeUnavailable(`${address} is not one of its nodes`);
    return node;
  }

  async #writeNodes(): Promise<void> {
    const [master, slaves, unavailable] = [this.#master ?? null, this.#slaves, this.#unavailable];
    await this.#writeState(
      this.#paths.nodes,
      JSON.stringify({ master, slaves, unavailable }),
      false,
    );
  }

  async #writeState(path: string, value: string, ephemeral: boolean): Promise<void> {
    this.#expectRunning();
    await this.#createPath(path, value, ephemeral);
    this.#expectRunning();
    await this.#zk.set(path, value);
  }

  async #createPath(path: string, value: string | null, ephemeral = false): Promise<void> {
    const { stat } = await this.#zk.stat(path);
    if (stat !== null) return;
    const options = { ephemeral };
    await this.#ignoring('NODE_EXISTS', this.#zk.create(path, value, options));
  }

  async #ignoring<T>(code: string, call: Promise<T>): Promise<T | undefined> {
    try {
      return await call;
    } catch (error) {
      if ((error as { readonly code?: unknown }).code === code) return undefined;
      throw error;
    }
  }

  #exclusively<T>(act: () => Promise<T>): Promise<T> {
    const next = this.#queue.then(() => {
      this.#expectRunning();
      return act();
    });
    this.#queue = next.catch(() => {});
    return next;
  }

  async #sleep(ms: number): Promise<void> {
    await this.pause(ms * this.#pace.pace);
    this.#expectRunning();
  }

  #expectRunning(): void {
    if (!this.alive || this.#ending.signal.aborted) throw new Stopped();
  }

  #note(what: string, more = ''): void {
    this.sim.trace.add(this.host.presentMs, this.name, what, () => more);
  }
}

function numberIn(child: string): number {
  return Number(/\d+$/.exec(child)?.[0] ?? 0);
}

function without(list: readonly string[], one: string): string[] {
  return list.filter((each) => each !== one);
}
