/** When managers of the Ruby gem run, and when ours do: the set is handed over and back. */
import type { ClockErrors } from '../harness/host.ts';
import { Host } from '../harness/host.ts';
import { Random } from '../harness/random.ts';
import { ClientLink } from '../harness/zookeeper/connection.ts';
import type { GemPace } from './gem.ts';
import { GemProcess, gemLockBelow } from './gem.ts';
import { ManagerProcess } from './manager.ts';
import type { Seat } from './process.ts';
import type { RedisFailoverSimulation } from './simulation.ts';

export interface GemPlan extends GemPace {
  readonly hosts: readonly ClockErrors[];
  /** Whose managers come first. */
  readonly begins: 'gem' | 'both' | 'ours';
  readonly chaosMs: number;
  readonly changeEveryMs: number;
  /** How often something goes wrong with a manager of the gem. */
  readonly faultEveryMs: number;
  /** Whether the gem's managers shall run when faults stop. */
  readonly endsWithGem: boolean;
}

/** In one of eight seeds. The other seeds draw nothing from any stream that they had before. */
export function drawGem(
  seed: number,
  drawHosts: (random: Random, count: number) => readonly ClockErrors[],
): GemPlan | undefined {
  const random = new Random(seed, 9);
  if (!random.chance(1 / 8)) return undefined;
  return {
    hosts: drawHosts(random, random.pick([1, 1, 2])),
    pace: random.pick([0.1, 0.25, 1]),
    maxFailures: random.pick([1, 3]),
    sessionTimeoutMs: random.pick([2_000, 6_000]),
    begins: random.pick(['gem', 'both', 'ours', 'ours'] as const),
    chaosMs: random.between(15_000, 40_000),
    changeEveryMs: random.between(3_000, 9_000),
    faultEveryMs: random.between(3_000, 12_000),
    endsWithGem: random.chance(0.6),
  };
}

/** The gem has published the same primary for so long, and a client may have waited for so long before. */
const steadyMs = 20_000;
const mostSteadyMs = 60_000;

export class GemLife {
  readonly seats: readonly Seat[];
  /** Commands of a manager may arrive when it has crashed. */
  readonly #every: GemProcess[] = [];
  /** No manager of ours is started meanwhile. */
  keepsOursAway = false;
  readonly #sim: RedisFailoverSimulation;
  readonly #plan: GemPlan;
  readonly #random: Random;
  /** The same of the gem's. */
  #keepsGemAway = false;
  #isOver = false;

  constructor(sim: RedisFailoverSimulation, plan: GemPlan) {
    const { seed, link } = sim.scenario;
    this.#sim = sim;
    this.#plan = plan;
    this.#random = new Random(seed, 17);
    this.seats = plan.hosts.map((clock, index) => {
      const stream = 100 * (index + 31);
      return {
        host: new Host(sim.world, `g${index + 1}`, clock, new Random(seed, stream)),
        link: new ClientLink(link, new Random(seed, stream + 1)),
        process: undefined,
      };
    });
  }

  /** A manager of the gem holds its lock: no place of ours stands before it. */
  get isThere(): boolean {
    const { tree } = this.#sim.ensemble;
    const path = gemLockBelow(this.#sim.root);
    const [first] = (tree.get(path)?.children ?? []).toSorted();
    return first !== undefined && tree.get(`${path}/${first}`)?.data?.length === 0;
  }

  begin(): void {
    const { begins } = this.#plan;
    if (begins === 'gem') this.keepsOursAway = true;
    if (begins === 'ours') this.#keepsGemAway = true;
    for (const seat of this.seats)
      this.#later(this.#random.between(0, 500), () => this.#start(seat));
  }

  /** Together with the other faults. */
  beginChaos(): void {
    const change = () =>
      this.#later(this.#random.exponential(this.#plan.changeEveryMs), () => {
        this.#change();
        change();
      });
    const fault = () =>
      this.#later(this.#random.exponential(this.#plan.faultEveryMs), () => {
        this.#fault();
        fault();
      });
    change();
    fault();
  }

  /** Faults are over: clients follow the gem, where it has found its way; then ours take over. */
  async end(): Promise<void> {
    this.#isOver = true;
    const { coverage, world } = this.#sim;
    if (this.#plan.endsWithGem && this.isThere) {
      this.keepsOursAway = true;
      this.#note('our managers end for good');
      for (const seat of this.#sim.managers) this.#stopOurs(seat, true);
      this.#keepsGemAway = false;
      for (const seat of this.seats) this.#start(seat);
      await this.#expectFollowing();
      if (world.violation !== undefined) return;
    }
    this.#keepsGemAway = true;
    for (const seat of this.seats) this.#stopGem(seat, this.#random.chance(0.7));
    coverage.count('our managers take over for good');
    this.keepsOursAway = false;
    for (const seat of this.#sim.managers) {
      if (seat.process === undefined) this.#sim.startManager(seat);
    }
  }

  // --- who runs ---

  #change(): void {
    const { managers } = this.#sim;
    const isClean = this.#random.chance(0.7);
    const gapMs = this.#random.pick([0, 0, this.#random.between(0, 4_000)]);
    const toGem = () => {
      this.#note('our managers end, those of the gem begin');
      this.keepsOursAway = true;
      this.#keepsGemAway = false;
      for (const seat of managers) this.#stopOurs(seat, isClean);
      for (const seat of this.seats) this.#later(gapMs, () => this.#start(seat));
    };
    const toOurs = () => {
      this.#note('managers of the gem end, ours begin');
      this.keepsOursAway = false;
      this.#keepsGemAway = true;
      for (const seat of this.seats) this.#stopGem(seat, isClean);
      for (const seat of managers) this.#later(gapMs, () => this.#startOurs(seat));
    };
    const beside = () => {
      this.#note('managers of both kinds run');
      this.keepsOursAway = false;
      this.#keepsGemAway = false;
      for (const seat of this.seats) this.#start(seat);
      for (const seat of managers) this.#later(gapMs, () => this.#startOurs(seat));
    };
    this.#random.weighted([
      [3, toGem],
      [4, toOurs],
      [2, beside],
    ])();
  }

  isOfSession(id: bigint): boolean {
    return this.#every.some((process) => process.isOfSession(id));
  }

  #start(seat: Seat): void {
    if (seat.process !== undefined || this.#keepsGemAway) return;
    const { scenario } = this.#sim;
    const random = new Random(scenario.seed, 2_000 + this.#sim.newNumber());
    const process = new GemProcess(this.#sim, seat, this.#plan, random);
    seat.process = process;
    this.#every.push(process);
    this.#sim.coverage.count('a manager of the gem starts');
  }

  #startOurs(seat: Seat): void {
    if (seat.process === undefined) this.#sim.startManager(seat);
  }

  #stopGem(seat: Seat, isClean: boolean): void {
    const { process } = seat;
    if (process === undefined) return;
    seat.process = undefined;
    if (isClean && process instanceof GemProcess) void process.stop();
    else process.crash();
  }

  #stopOurs(seat: Seat, isClean: boolean): void {
    const { process } = seat;
    if (process === undefined) return;
    seat.process = undefined;
    if (isClean && process instanceof ManagerProcess) process.stop();
    else process.crash();
  }

  #fault(): void {
    const random = this.#random;
    const seat = random.pick(this.seats);
    const { host, process } = seat;
    if (process === undefined) return;
    const spanMs = random.pick([random.between(100, 2_000), random.between(2_000, 12_000)]);
    random.weighted([
      [
        2,
        () => {
          this.#note('a manager of the gem crashes');
          this.#stopGem(seat, false);
          this.#later(spanMs, () => this.#start(seat));
        },
      ],
      [
        3,
        () => {
          this.#note('a manager of the gem stands still');
          host.stall(spanMs);
        },
      ],
      [
        3,
        () => {
          const node = random.pick(this.#sim.nodes);
          this.#note(`a manager of the gem is cut off from a node`);
          const link = this.#sim.link(host.name, node);
          link.hold();
          this.#later(spanMs, () => link.letGo());
        },
      ],
      [
        1,
        () => {
          this.#note('a client of the gem asks for a failover');
          this.#askAsGem();
        },
      ],
    ])();
  }

  #askAsGem(): void {
    const { ensemble, root, nodes } = this.#sim;
    const addresses = nodes.map(({ addresses: [own] }) => own);
    const path = `${root}/manual_failover`;
    const wanted = this.#random.pick(['ANY_SLAVE', ...addresses]);
    const data = new TextEncoder().encode(wanted);
    if (ensemble.tree.get(path) !== undefined) {
      ensemble.byHand([{ type: 'set', path, data, version: -1 }]);
    } else {
      ensemble.byHand([{ type: 'create', path, data, ephemeral: false, sequential: false }]);
    }
  }

  // --- what is expected of clients ---

  /** The primary that the gem publishes is one, and stays it: then every client writes to it. */
  async #expectFollowing(): Promise<void> {
    const { world, guarantees, coverage } = this.#sim;
    let steadySinceMs = world.nowMs;
    let last = '';
    const look = () => {
      const seen = this.#published();
      if (seen !== last || seen === '') steadySinceMs = world.nowMs;
      last = seen;
      return world.nowMs - steadySinceMs >= steadyMs;
    };
    await world.run(world.nowMs + mostSteadyMs, look);
    if (world.violation !== undefined) return;
    if (!look()) {
      coverage.count('the gem finds no primary');
      return;
    }
    coverage.count('clients follow the gem');
    const since = world.nowMs - steadyMs;
    for (const { host } of this.#sim.writers) {
      if ((guarantees.lastStartedMs.get(host.name) ?? 0) > since) continue;
      world.fail(
        'live',
        `${host.name} has not written for ${steadyMs} ms, while a manager of the gem published ${last}`,
      );
    }
  }

  /** Empty while it is no primary that can be written to. */
  #published(): string {
    const { ensemble, root, nodes } = this.#sim;
    const node = ensemble.tree.get(`${root}/nodes`);
    const master = this.#sim.publishedPrimary;
    const server = nodes.find(({ addresses }) => addresses[0] === master)?.server;
    const isPrimary =
      server !== undefined && server.upstream === undefined && server.loading === undefined;
    return node !== undefined && isPrimary ? `${master} ${node.czxid} ${server.runId}` : '';
  }

  #note(what: string): void {
    const { trace, world, coverage } = this.#sim;
    trace.add(world.nowMs, '*', what);
    coverage.count(what);
  }

  #later(ms: number, act: () => void): void {
    const { world } = this.#sim;
    world.at(world.nowMs + ms, () => {
      if (!this.#isOver) act();
      return true;
    });
  }
}
