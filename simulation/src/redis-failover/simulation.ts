/**
 * One seed of the failover of Redis: modelled nodes and servers of ZooKeeper, managers and clients
 * that run the real code, and faults. It ends with the first violation, or when every client has
 * written after faults have stopped, and nothing moves any more.
 */
import type { FailoverRequest } from '../../../packages/redis-failover/dist/layout.js';
import { Coverage } from '../harness/coverage.ts';
import { Host } from '../harness/host.ts';
import type { Simulation } from '../harness/mechanism.ts';
import { Random } from '../harness/random.ts';
import { Trace } from '../harness/trace.ts';
import { World } from '../harness/world.ts';
import { ClientLink } from '../harness/zookeeper/connection.ts';
import { Ensemble } from '../harness/zookeeper/ensemble.ts';
import type { Link, RedisNode } from '../redis/index.ts';
import { Chaos, onlyChains } from './chaos.ts';
import { GemLife } from './gem-life.ts';
import { Guarantees } from './guarantees.ts';
import type { Library } from './library.ts';
import { ManagerProcess } from './manager.ts';
import { RedisWorld } from './nodes.ts';
import type { Seat } from './process.ts';
import type { Scenario, WrongList } from './scenario.ts';
import { drawScenario } from './scenario.ts';
import { Writer } from './writer.ts';

/** How long it may take from the end of faults until every client writes. */
const liveMs = 50_000;
/** For so long a manager leads before nothing is to move any more. */
const settledMs = 3_000;
const stableMs = 5_000;

/** Whom a manager of the gem has told a node to copy; undefined: nobody. */
export interface GemOrder {
  readonly primary: string | undefined;
  readonly runId: string | undefined;
}

export class RedisFailoverSimulation implements Simulation {
  readonly library: Library;
  readonly scenario: Scenario;
  readonly trace: Trace;
  readonly world: World;
  readonly coverage: Coverage = new Coverage();
  readonly ensemble: Ensemble;
  readonly redis: RedisWorld;
  readonly nodes: RedisNode[] = [];
  readonly managers: Seat[] = [];
  readonly writers: Seat[] = [];
  readonly gem: GemLife | undefined;
  readonly guarantees: Guarantees;
  readonly root = '/redis_failover';
  /** When each node was started last, and told whom to follow. */
  readonly startedAtMs: Map<string, number> = new Map();
  readonly orderedAtMs: Map<string, number> = new Map();
  /** Nodes that follow whom an operator has told them to follow. */
  readonly toldByHand: Set<string> = new Set();
  readonly promotedByHand: Set<string> = new Set();
  /** Nodes whose role is the one that a manager of the gem has given them. */
  readonly toldByGem: Map<string, GemOrder> = new Map();
  /** Nodes that managers of the gem have ever made the primary. */
  readonly promotedByGem: Set<string> = new Set();
  gemToldAtMs: number = Number.NEGATIVE_INFINITY;
  /** The node whose data count, as an operator has said last. */
  keptByHand: RedisNode | undefined;
  /** As `nodes` names it. */
  publishedPrimary: string | undefined;
  /** The manager that was elected last. */
  leading: ManagerProcess | undefined;
  /** The trouble that an elected manager has told of last. */
  lastTrouble: string | undefined;
  /**
   * The troubles that elected managers have told of since the last fault, and those that they still
   * have.
   */
  readonly #troubles = new Set<string>();
  /** Told once, when the record names nobody. */
  onRevoked: (() => void) | undefined;
  readonly #links = new Set<Link>();
  readonly #random: Random;
  readonly #byHand: Random;
  #wrongList: WrongList | undefined;
  #lastNumber = 0;

  constructor(library: Library, seed: number, readable: boolean) {
    this.library = library;
    this.scenario = drawScenario(seed);
    const { scenario } = this;
    this.#random = new Random(seed, 11);
    this.trace = new Trace(readable);
    this.world = new World(new Random(seed, 12), this.trace);
    const { world } = this;
    this.ensemble = new Ensemble(world, new Random(seed, 13), scenario.ensemble);
    const latency = new Random(seed, 14);
    this.redis = new RedisWorld(
      world,
      new Random(seed, 15),
      () => scenario.nodeLatencyMs * (0.2 + latency.exponential(0.8)),
    );
    this.#wrongList = scenario.layout.wrongList;
    this.#byHand = new Random(seed, 17);
    this.guarantees = new Guarantees(this);
    this.#addNodes();
    world.check = () => this.guarantees.look();
    this.ensemble.onCommit = (transaction, session) => {
      const change = transaction.changes.get(`${this.root}/primary`);
      if (change?.data !== undefined && change.data !== null) this.#recorded(change.data);
      if (!transaction.changes.has(`${this.root}/nodes`)) return;
      this.publishedPrimary = masterIn(transaction.changes.get(`${this.root}/nodes`)?.data);
      const isOfGem = this.gem?.isOfSession(session) === true;
      this.guarantees.published(this.publishedPrimary, isOfGem);
    };
    for (const [index, clock] of scenario.managers.entries()) {
      this.managers.push(this.#seat(`m${index + 1}`, clock, 100 * (index + 1)));
    }
    for (const [index, clock] of scenario.writers.entries()) {
      this.writers.push(this.#seat(`c${index + 1}`, clock, 100 * (index + 11)));
    }
    this.gem = scenario.gem && new GemLife(this, scenario.gem);
  }

  #recorded(data: Uint8Array): void {
    const record = this.library.decodePrimary('primary', new TextDecoder().decode(data));
    this.trace.add(this.world.nowMs, 'zk', `record: ${record.primary} in term ${record.term}`);
    this.guarantees.recorded(record);
    if (record.primary !== null) return;
    this.onRevoked?.();
    this.onRevoked = undefined;
  }

  get seats(): readonly Seat[] {
    return [...this.managers, ...this.writers, ...(this.gem?.seats ?? [])];
  }

  get links(): Iterable<Link> {
    return this.#links;
  }

  /** The node that the record names, or named last; under managers of the gem, what they name. */
  get primary(): RedisNode | undefined {
    const { record } = this.guarantees;
    const named = record?.primary ?? record?.former;
    return this.nodeAt(this.gem === undefined ? named : (this.publishedPrimary ?? named));
  }

  nodeAt(address: string | null | undefined): RedisNode | undefined {
    return this.nodes.find(({ addresses }) => addresses.some((each) => each === address));
  }

  /** The address by which an operator calls it. */
  addressOf({ addresses }: RedisNode): string {
    return addresses.length === 1 ? addresses[0] : this.#byHand.pick(addresses);
  }

  /** The nodes that a manager is told to watch. */
  listOf(seat: Seat): readonly string[] {
    const wrong = this.#wrongList;
    const isWrong = wrong !== undefined && this.managers.indexOf(seat) === wrong.manager;
    return this.nodes.flatMap(({ addresses: [own, other] }, index) => {
      if (!isWrong || index !== wrong.node) return [own];
      return wrong.isAlias && other !== undefined ? [other] : [];
    });
  }

  /** Whether the elected manager watches it, under this name or another. */
  isListed(node: RedisNode): boolean {
    const seat = this.managers.find(({ process }) => process === this.leading);
    if (seat === undefined) return true;
    return this.listOf(seat).some((address) => node.addresses.includes(address));
  }

  /** Some manager that runs lists it. */
  isListedAtAll(node: RedisNode): boolean {
    const lists = this.managers.flatMap((seat) =>
      seat.process?.alive === true && !seat.host.isPaused ? this.listOf(seat) : [],
    );
    return lists.some((address) => node.addresses.includes(address));
  }

  newNumber(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  /** A link that faults may strike. */
  link(from: string, node: RedisNode): Link {
    const link = this.redis.model.link(from, node.name);
    this.#links.add(link);
    return link;
  }

  /** Whether the elected manager may be unable to reach it. */
  isCutOff(name: string): boolean {
    const leading = this.managers.filter(({ process }) => process === this.leading);
    return (leading.length === 0 ? this.managers : leading).some(({ host }) => {
      const { forth, back, refuses } = this.redis.model.link(host.name, name);
      return forth.isHeld || back.isHeld || refuses;
    });
  }

  /** Whether a manager leads that reaches all nodes and ZooKeeper. */
  isManaged(): boolean {
    const { leading, gem, guarantees } = this;
    if (gem !== undefined) {
      // Ours wait for the gem's, and look at what those have left before they do anything.
      if (gem.isThere || /Ruby gem/.test(leading?.trouble ?? '')) return false;
      const { record } = guarantees;
      const isMoved =
        this.publishedPrimary !== undefined && this.publishedPrimary !== record?.primary;
      if (isMoved) return false;
    }
    if (leading === undefined || !leading.alive || !leading.isLeading) return false;
    const seat = this.managers.find(({ process }) => process === leading);
    if (seat === undefined || seat.host.isPaused || seat.link.requestsCut || seat.link.repliesCut) {
      return false;
    }
    // It reads the record before it does anything.
    const { leadership } = this.ensemble;
    const isServed = [...seat.link.connections].some(({ server }) => server.isRunning);
    if (!isServed || !leadership.server.isRunning || !leadership.hasQuorum) return false;
    return this.nodes.every(({ name }) => {
      const { forth, back, refuses } = this.redis.model.link(seat.host.name, name);
      return !forth.isHeld && !back.isHeld && !refuses;
    });
  }

  #addNodes(): void {
    const { scenario, redis, world } = this;
    const { layout } = scenario;
    const last = scenario.nodes.length - 1;
    for (const [index, { settings, loadMs, copyMs }] of scenario.nodes.entries()) {
      const name = `r${index + 1}`;
      const isChained = layout.hasChain && index === last;
      const first = layout.followsAlias ? aliasOf('r1') : 'r1';
      const replicaof = `${isChained ? `r${index}` : first} 6379`;
      const node: RedisNode = redis.model.addNode({
        name,
        addresses: [`${name}:6379`, ...(layout.hasAliases ? [`${aliasOf(name)}:6379`] : [])],
        settings: index === 0 ? settings : { ...settings, replicaof },
        speeds: {
          loadMs: (keys) => (keys === 0 ? 0 : loadMs + keys * 0.01),
          copyMs: (keys) => 0.2 + copyMs + keys * 0.01,
        },
        watcher: {
          wrote: (key) => this.guarantees.wrote(name, key),
          follows: (primary, by) => {
            this.orderedAtMs.set(name, world.nowMs);
            this.#orderedBy(by, name, primary);
            if (by === operator) this.toldByHand.add(name);
            else this.toldByHand.delete(name);
          },
          leads: (by) => this.#orderedBy(by, name, undefined),
          empties: (data, primary) => {
            this.trace.add(world.nowMs, name, `is emptied of ${data.size} for ${primary}`);
            this.guarantees.empties(node, data, primary);
          },
        },
      });
      this.nodes.push(node);
    }
  }

  #orderedBy(by: string, name: string, primary: string | undefined): void {
    if (this.gem?.seats.some(({ host }) => host.name === by) === true) {
      const source = this.nodes.find(({ addresses }) => addresses[0] === primary);
      this.toldByGem.set(name, { primary, runId: source?.server?.runId });
      this.gemToldAtMs = this.world.nowMs;
      if (primary === undefined) this.promotedByGem.add(name);
      this.trace.add(this.world.nowMs, name, 'is told its role by the gem');
    } else this.toldByGem.delete(name);
  }

  #seat(name: string, clock: Scenario['managers'][number], stream: number): Seat {
    const { seed } = this.scenario;
    return {
      host: new Host(this.world, name, clock, new Random(seed, stream)),
      link: new ClientLink(this.scenario.link, new Random(seed, stream + 1)),
      process: undefined,
    };
  }

  // --- what starts and ends ---

  startNode(node: RedisNode): void {
    node.start();
    // It goes by its file, which the gem never writes.
    this.toldByGem.delete(node.name);
    this.startedAtMs.set(node.name, this.world.nowMs);
  }

  /** A process ends, or its data go. */
  endNode(node: RedisNode, end: () => void): void {
    const { server } = node;
    const before = new Set([
      ...(server?.data.keys ?? []),
      // It had come whole, and was being loaded.
      ...(server?.upstream?.copy?.keys ?? []),
      ...(node.disk.aof?.keys ?? []),
      ...(node.disk.rdb?.data.keys ?? []),
    ]);
    end();
    this.guarantees.fault(node, [...before]);
  }

  /** It may save before it ends, and wait for its replicas. */
  stopNode(node: RedisNode): void {
    const { server } = node;
    if (server === undefined) return;
    node.stop();
    const wait = () => {
      if (node.server === server) {
        this.world.at(this.world.nowMs + 50, () => {
          wait();
          return false;
        });
      } else this.guarantees.fault(node, server.data.keys);
    };
    wait();
  }

  startManager(seat: Seat): void {
    if (this.gem?.keepsOursAway === true) return;
    seat.process = new ManagerProcess(
      this,
      seat,
      new Random(this.scenario.seed, 1_000 + this.newNumber()),
    );
  }

  startWriter(seat: Seat): void {
    seat.process = new Writer(this, seat, new Random(this.scenario.seed, 1_000 + this.newNumber()));
  }

  // --- the phases ---

  #countLayout(): void {
    const { coverage, scenario } = this;
    const { hasChain, followsAlias, wrongList } = scenario.layout;
    if (scenario.nodes.length > 3) coverage.count('sets of four nodes');
    if (hasChain) coverage.count('sets with a replica of a replica');
    if (followsAlias) coverage.count('sets that follow a second address');
    if (wrongList !== undefined) {
      coverage.count(`node lists with ${wrongList.isAlias ? 'a second address' : 'a node less'}`);
    }
  }

  async run(): Promise<void> {
    const { world, scenario } = this;
    this.#countLayout();
    for (const node of this.nodes) this.startNode(node);
    // The replicas copy first.
    await world.run(scenario.syncMs);
    for (const seat of this.managers) this.#soon(() => this.startManager(seat));
    for (const seat of this.writers) this.#soon(() => this.startWriter(seat));
    this.gem?.begin();
    await world.run(scenario.calmMs);
    if (world.violation !== undefined) return;
    const chaos = new Chaos(this, new Random(scenario.seed, 16));
    chaos.begin();
    const chains = new Chaos(this, new Random(scenario.seed, 18));
    if (scenario.layout.isChainedByHand) chains.begin(onlyChains);
    this.gem?.beginChaos();
    await world.run(scenario.calmMs + (scenario.gem?.chaosMs ?? scenario.chaosMs));
    if (world.violation !== undefined) return;
    chains.stop();
    chaos.end();
    this.trace.add(world.nowMs, '-', 'faults stop');
    await this.gem?.end();
    if (world.violation !== undefined) return;
    await this.#expectLife();
    if (world.violation !== undefined) return;
    await this.#expectPeace();
  }

  #soon(act: () => void): void {
    this.world.at(this.#random.next() * 500, () => {
      act();
      return true;
    });
  }

  async #expectLife(): Promise<void> {
    const { world, guarantees } = this;
    this.#troubles.clear();
    if (this.leading?.trouble !== undefined) this.#troubles.add(this.leading.trouble);
    // Sessions of before may still end, and who is elected looks at everything first.
    let managedSinceMs = world.nowMs;
    const isLive = () => {
      if (!this.isManaged() || this.leading?.trouble !== undefined) managedSinceMs = world.nowMs;
      // They are served one after the other, which may take longer.
      if (this.#hasOpenRequests()) return false;
      const isSettled = world.nowMs - managedSinceMs >= settledMs;
      return isSettled && this.#writeSince(managedSinceMs);
    };
    await world.run(world.nowMs + liveMs, isLive);
    if (world.violation !== undefined || isLive()) return;
    const isTold = (words: RegExp) => [...this.#troubles].some((said) => words.test(said));
    const act = isTold(/incumbent-redis keep/)
      ? () => this.#keepBest()
      : isTold(/REPLICAOF NO ONE|REPLICAOF host port/)
        ? () => this.#makeBestThePrimary()
        : undefined;
    if (act !== undefined) {
      this.coverage.count('an operator has to decide');
      this.#correctLists();
      act();
      managedSinceMs = world.nowMs;
      await world.run(world.nowMs + liveMs, isLive);
      if (world.violation !== undefined || isLive()) return;
    }
    world.fail(
      'live',
      `not every client can write ${liveMs} ms after faults stopped; the record names ` +
        `${guarantees.record?.primary}; a manager said last: ${this.lastTrouble}`,
    );
  }

  troubleSaid(message: string): void {
    this.lastTrouble = message;
    this.#troubles.add(message);
  }

  #hasOpenRequests(): boolean {
    const { ensemble, guarantees, library, root } = this;
    const manual = ensemble.tree.get(`${root}/manual_failover`);
    const isOpen = manual !== undefined && `${manual.mzxid}` !== guarantees.record?.manualSeen;
    if (isOpen && guarantees.record !== undefined) return true;
    const parent = `${root}/failover_requests`;
    return (ensemble.tree.get(parent)?.children ?? []).some((child) => {
      const path = `${parent}/${child}`;
      const text = new TextDecoder().decode(ensemble.tree.get(path)?.data);
      return library.decodeRequest(path, text).outcome === undefined;
    });
  }

  #writeSince(ms: number): boolean {
    const { lastStartedMs } = this.guarantees;
    return this.writers.every(({ host }) => (lastStartedMs.get(host.name) ?? 0) > ms);
  }

  /** A manager cannot make a node the primary that it does not list, whoever says so. */
  #correctLists(): void {
    const seat = this.#wrongList && this.managers[this.#wrongList.manager];
    if (seat === undefined) return;
    this.#wrongList = undefined;
    seat.process?.crash();
    this.startManager(seat);
  }

  /** As an operator who looks at what the nodes have. */
  #best(): RedisNode | undefined {
    const sizeOf = ({ server }: RedisNode) => server?.data.size ?? 0;
    return this.nodes.toSorted((a, b) => sizeOf(b) - sizeOf(a))[0];
  }

  /** Nothing is on record yet, and as many primaries as there should be are not there. */
  #makeBestThePrimary(): void {
    const best = this.#best();
    if (best === undefined) return;
    this.trace.add(this.world.nowMs, 'op', `makes ${best.name} the primary`);
    this.keptByHand = best;
    this.say(best, ['REPLICAOF', 'NO', 'ONE']);
    const [host = '', port = ''] = this.addressOf(best).split(':');
    for (const node of this.nodes) if (node !== best) this.say(node, ['REPLICAOF', host, port]);
  }

  #keepBest(): void {
    const best = this.#best();
    this.keptByHand = best;
    this.request({ node: best?.addresses[0] ?? null, action: 'keep', requestedBy: 'operator' });
  }

  request(request: FailoverRequest): void {
    const { ensemble, library, root, trace, world } = this;
    trace.add(world.nowMs, 'op', `asks: ${request.action ?? 'move'} ${request.node}`);
    const path = `${root}/failover_requests/request-`;
    const data = new TextEncoder().encode(library.encodeRequest(request));
    const node = { data, ephemeral: false, sequential: true } as const;
    ensemble.byHand([{ type: 'create', path, ...node }]);
  }

  /** As an operator says it to a node. Its errors are ignored. */
  say(node: RedisNode, parts: readonly string[]): void {
    const { model } = this.redis;
    const address = this.addressOf(node);
    if (parts[0] === 'REPLICAOF' && parts[1] === 'NO') this.promotedByHand.add(node.name);
    model.connect(operator, address).then(
      (connection) => {
        connection.send(parts).then(
          (reply) => {
            // A write that an operator was told of is kept like a write of a client.
            if (parts[0] === 'SET' && reply === 'OK') this.guarantees.told(parts[1] as string);
            connection.close();
          },
          () => connection.close(),
        );
      },
      () => {},
    );
  }

  async #expectPeace(): Promise<void> {
    const { world, guarantees } = this;
    guarantees.stableSinceMs = world.nowMs;
    await world.run(world.nowMs + stableMs);
    const { record } = guarantees;
    const { primary } = this;
    if (world.violation !== undefined || record?.primary == null || primary === undefined) return;
    guarantees.checkEnd(primary);
  }
}

/** Where an operator sits. */
const operator = 'op';

function aliasOf(name: string): string {
  return `${name}.alias`;
}

function masterIn(data: Uint8Array | null | undefined): string | undefined {
  if (data === null || data === undefined) return undefined;
  return (
    (JSON.parse(new TextDecoder().decode(data)) as { master: string | null }).master ?? undefined
  );
}
