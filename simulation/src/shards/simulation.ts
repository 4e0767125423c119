/**
 * One seed: hosts, a store, processes that share shards by the real packages, and a plan of faults. It
 * ends with the first violation, or after faults have stopped, the shards are shared evenly, one more
 * process has joined, and all have left in good order.
 */
import { Coverage } from '../harness/coverage.ts';
import type { ClockErrors } from '../harness/host.ts';
import { Host } from '../harness/host.ts';
import type { Simulation } from '../harness/mechanism.ts';
import { Random } from '../harness/random.ts';
import { Trace } from '../harness/trace.ts';
import { World } from '../harness/world.ts';
import type { TermEntry } from './guarantees.ts';
import { Guarantees } from './guarantees.ts';
import type { Library } from './library.ts';
import type { MemberPlan } from './member-process.ts';
import { MemberProcess } from './member-process.ts';
import type { Network, StoreTraits } from './store.ts';
import { Link, Server } from './store.ts';

interface Scenario {
  readonly shards: number;
  readonly leaseMs: number;
  readonly drift: number;
  readonly stopTimeoutMs: number;
  readonly maxMoving: number;
  readonly store: StoreTraits;
  readonly network: Network;
  readonly chaosMs: number;
  /** The mean time between two faults. */
  readonly faultEveryMs: number;
}

/** A host, and what runs on it now. */
interface Place {
  readonly host: Host;
  readonly link: Link;
  readonly plan: MemberPlan;
  process: MemberProcess | undefined;
}

export class ShardsSimulation implements Simulation {
  readonly library: Library;
  readonly world: World;
  readonly trace: Trace;
  readonly server: Server;
  readonly coverage: Coverage = new Coverage();
  readonly guarantees: Guarantees;
  readonly scenario: Scenario;
  /** Faults are over. */
  isQuiet = false;
  readonly #places: Place[] = [];
  readonly #random: Random;
  readonly #seed: number;
  readonly #deadSinceMs = new Map<number, number>();
  /** The last place takes part at the end only. */
  readonly #late: Place;
  #lastNumber = 0;

  constructor(library: Library, seed: number, readable: boolean) {
    this.library = library;
    this.#seed = seed;
    this.#random = new Random(seed, 1);
    this.trace = new Trace(readable);
    this.world = new World(new Random(seed, 2), this.trace);
    this.server = new Server(this.world);
    this.guarantees = new Guarantees(this.world, this.coverage, library);
    this.server.onCommit = (name, record) => this.guarantees.onCommit(name, record);
    this.world.check = () => this.guarantees.check();
    this.scenario = drawScenario(new Random(seed, 3));
    const count = 2 + this.#random.below(4);
    const isWeighted = this.#random.chance(0.3);
    const isZoned = !isWeighted && this.#random.chance(0.2);
    for (let i = 0; i <= count; i += 1) {
      const stream = 100 * (i + 1);
      const errors = drawClock(this.#random, this.scenario);
      const host = new Host(this.world, `n${i + 1}`, errors, new Random(seed, stream));
      const { network } = this.scenario;
      const link = new Link(this.world, this.server, host, network, new Random(seed, stream + 1));
      const weight = isWeighted ? 1 + this.#random.below(3) : 1;
      const zone = isZoned ? `z${i % 2}` : undefined;
      this.#places.push({ host, link, plan: { weight, zone }, process: undefined });
    }
    this.#late = this.#places.pop() as Place;
  }

  async run(): Promise<void> {
    const { leaseMs, chaosMs } = this.scenario;
    for (const place of this.#places) {
      this.world.at(this.#random.next() * (this.#random.chance(0.5) ? 0.2 : 2) * leaseMs, () => {
        this.#start(place);
        return true;
      });
    }
    this.#nextFault();
    await this.world.run(chaosMs);
    if (this.world.violation !== undefined) return;
    await this.#calm();
    await this.#expectBalance('after the faults');
    await this.#expectRest();
    await this.#expectFewMoves();
    await this.#expectDrain();
    await this.#expectEnd();
  }

  // --- faults ---

  #nextFault(): void {
    const { faultEveryMs } = this.scenario;
    this.world.at(this.world.nowMs + this.#random.exponential(faultEveryMs), () => {
      if (this.isQuiet) return false;
      this.#fault();
      this.#nextFault();
      return true;
    });
  }

  #fault(): void {
    const random = this.#random;
    const { leaseMs } = this.scenario;
    const place = random.pick(this.#places);
    const { host, link, process } = place;
    const for_ = random.next() * 2.2 * leaseMs;
    const fault = random.weighted<string>([
      [3, 'stall'],
      [1, 'suspend'],
      [1, 'clock'],
      [3, 'kill'],
      [3, 'kill after a write'],
      [2, 'drain'],
      [2, 'close'],
      [2, 'cut requests'],
      [2, 'cut replies'],
      [1, 'outage'],
      [2, 'hiccup'],
      [1, 'resign'],
    ]);
    this.coverage.count(`fault: ${fault}`);
    this.trace.add(this.world.nowMs, host.name, `fault: ${fault}`, () => `${for_.toFixed(0)} ms`);
    const later = (undo: () => void) =>
      this.world.at(this.world.nowMs + for_, () => {
        undo();
        return false;
      });
    if (fault === 'stall') host.stall(for_);
    else if (fault === 'suspend') host.suspend(for_);
    else if (fault === 'clock') host.stepWall((random.next() - 0.5) * 4 * leaseMs);
    else if (fault === 'hiccup') host.armHiccup(1 + random.below(200), for_);
    else if (fault === 'kill' && process !== undefined) this.kill(process);
    else if (fault === 'kill after a write' && process !== undefined) {
      process.swapsUntilDeath = 1 + random.below(6);
    } else if (fault === 'drain' || fault === 'close') process?.leave(fault);
    else if (fault === 'resign') process?.shards.term(random.below(this.scenario.shards))?.resign();
    else if (fault === 'cut requests') {
      link.requestsCut = true;
      later(() => {
        link.requestsCut = false;
      });
    } else if (fault === 'cut replies') {
      link.repliesCut = true;
      later(() => {
        link.repliesCut = false;
      });
    } else if (fault === 'outage') {
      this.server.outage = random.pick(['silent', 'refuses'] as const);
      later(() => {
        this.server.outage = 'none';
      });
    }
  }

  async #calm(): Promise<void> {
    this.isQuiet = true;
    this.trace.add(this.world.nowMs, '-', 'faults stop');
    this.server.outage = 'none';
    const { network } = this.scenario;
    const calm: Network = {
      ...network,
      spikes: 0,
      losesRequests: 0,
      losesReplies: 0,
      duplicates: 0,
      errors: 0,
    };
    for (const { link, process } of [...this.#places, this.#late]) {
      link.heal();
      link.network = calm;
      if (process !== undefined) process.swapsUntilDeath = Number.POSITIVE_INFINITY;
    }
    const awakeMs = Math.max(...this.#places.map(({ host }) => host.pausedUntilMs));
    await this.world.run(Math.max(this.world.nowMs, awakeMs));
    for (const place of this.#places) if (place.process === undefined) this.#start(place);
  }

  // --- the end of a seed ---

  /**
   * The last fault may have killed the coordinator and another member: twice D, if a clock is slow. A
   * work may be deaf for two leases, and then for each of the waves of moves the next one settles. A
   * shard that was given up unasked rests for a lease at most.
   */
  get #boundMs(): number {
    const { leaseMs, drift, shards, maxMoving } = this.scenario;
    const waves = Math.ceil(shards / maxMoving);
    return (leaseMs * (12 + 0.6 * waves)) / (1 - drift);
  }

  get #members(): readonly MemberProcess[] {
    return [...this.#places, this.#late].flatMap(({ process }) =>
      process === undefined || process.isLeaving ? [] : [process],
    );
  }

  async #expectBalance(when: string): Promise<void> {
    if (this.world.violation !== undefined) return;
    const untilMs = this.world.nowMs + this.#boundMs;
    let why: string | undefined;
    while (this.world.violation === undefined && this.world.nowMs < untilMs) {
      await this.world.run(untilMs, () => this.#imbalance() === undefined);
      // A process that cannot confirm any more believes for a while.
      const before = this.#begun();
      await this.world.run(this.world.nowMs + 1.5 * this.scenario.leaseMs);
      why = this.#imbalance();
      if (why === undefined && this.#begun() === before) return;
    }
    this.world.fail('balance', `${when}, ${this.#boundMs.toFixed(0)} ms later: ${why}`);
  }

  /** Undefined: all shards have an owner, and each process has its share. */
  #imbalance(): string | undefined {
    this.world.looking = true;
    try {
      const members = this.#members;
      const owned = members.map((process) => process.shards.owned().length);
      const { shards } = this.scenario;
      const said = members.map(({ name }, i) => `${name}: ${owned[i]}`).join(', ');
      if (owned.reduce((sum, count) => sum + count, 0) !== shards) return said;
      const weights = members.reduce((sum, { plan }) => sum + plan.weight, 0);
      const isFair = members.every(({ plan }, i) => {
        const exact = (shards * plan.weight) / weights;
        const count = owned[i] ?? 0;
        return count >= Math.floor(exact) && count <= Math.ceil(exact);
      });
      return isFair && this.#areZonesFair(members, owned, weights) ? undefined : said;
    } finally {
      this.world.looking = false;
    }
  }

  #areZonesFair(
    members: readonly MemberProcess[],
    owned: readonly number[],
    weights: number,
  ): boolean {
    const zones = new Map<string, { count: number; weight: number }>();
    for (const [i, { plan }] of members.entries()) {
      const zone = zones.get(plan.zone ?? '') ?? { count: 0, weight: 0 };
      zone.count += owned[i] ?? 0;
      zone.weight += plan.weight;
      zones.set(plan.zone ?? '', zone);
    }
    return [...zones.values()].every(({ count, weight }) => {
      const exact = (this.scenario.shards * weight) / weights;
      return count >= Math.floor(exact) && count <= Math.ceil(exact);
    });
  }

  #begun(): number {
    return [...this.guarantees.begun.values()].reduce((sum, count) => sum + count, 0);
  }

  async #expectRest(): Promise<void> {
    if (this.world.violation !== undefined) return;
    const { leaseMs } = this.scenario;
    const before = this.#begun();
    await this.world.run(this.world.nowMs + 3 * leaseMs);
    if (this.world.violation !== undefined) return;
    const moved = this.#begun() - before;
    if (moved > 0) this.world.fail('rest', `${moved} terms began although all was shared evenly`);
  }

  async #expectFewMoves(): Promise<void> {
    if (this.world.violation !== undefined) return;
    const before = this.#begun();
    const owned = new Map(this.#members.map((each) => [each, each.shards.owned().length]));
    this.#start(this.#late);
    await this.#expectBalance('after one more has joined');
    if (this.world.violation !== undefined) return;
    const moved = this.#begun() - before;
    this.coverage.count('moves to a newcomer', moved);
    // Those that have too many must give some away, and those that have too few must get some.
    const weights = this.#members.reduce((sum, { plan }) => sum + plan.weight, 0);
    let tooMany = 0;
    let tooFew = 0;
    for (const process of this.#members) {
      const exact = (this.scenario.shards * process.plan.weight) / weights;
      const count = owned.get(process) ?? 0;
      tooMany += Math.max(0, count - Math.ceil(exact));
      tooFew += Math.max(0, Math.floor(exact) - count);
    }
    const fewest = Math.max(tooMany, tooFew);
    // With zones the count is that of the zones besides.
    if (moved > fewest && this.#late.plan.zone === undefined) {
      this.world.fail('moves', `${moved} shards moved, and ${fewest} would have done`);
    }
  }

  async #expectDrain(): Promise<void> {
    if (this.world.violation !== undefined) return;
    const process = this.#random.pick(this.#members);
    process.leave('drain');
    await this.world.run(this.world.nowMs + this.#boundMs, () => process.hasLeft);
    if (this.world.violation !== undefined) return;
    if (!process.hasLeft) this.world.fail('drain', `${process.name} has not left`);
    else if (process.running > 0) this.world.fail('drain', `work of ${process.name} goes on`);
    await this.#expectBalance('after a drain');
  }

  async #expectEnd(): Promise<void> {
    if (this.world.violation !== undefined) return;
    const leaving = this.#members;
    for (const process of leaving) process.leave('close');
    const { leaseMs, drift } = this.scenario;
    const untilMs = this.world.nowMs + (4 * leaseMs) / (1 - drift);
    await this.world.run(untilMs, () => leaving.every(({ hasLeft }) => hasLeft));
    for (const process of leaving) {
      if (!process.hasLeft) this.world.fail('settling', `${process.name} has not left`);
    }
  }

  // --- what processes ask it ---

  #start(place: Place): void {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const { host, link, plan } = place;
    const random = new Random(this.#seed, 10_000 + number);
    place.process = new MemberProcess(this, host, link, plan, number, random);
    this.trace.add(this.world.nowMs, place.process.name, 'starts');
  }

  kill(process: MemberProcess): void {
    if (!process.alive) return;
    this.trace.add(this.world.nowMs, process.name, 'is killed');
    this.coverage.count('crashes');
    process.alive = false;
    this.#deadSinceMs.set(process.number, this.world.nowMs);
    for (const entry of this.guarantees.terms) {
      if (entry.process === process) this.guarantees.terms.delete(entry);
    }
    this.#gone(process);
  }

  isDead(number: number): boolean {
    return this.#deadSinceMs.has(number);
  }

  settled(entry: TermEntry): void {
    // Its belief ends in the turn in which its work settles.
    this.world.at(this.world.nowMs, () => {
      this.guarantees.terms.delete(entry);
      return false;
    });
  }

  left(process: MemberProcess): void {
    if (process.hasLeft) return;
    process.hasLeft = true;
    this.trace.add(this.world.nowMs, process.name, 'has left');
    this.#gone(process);
  }

  #gone(process: MemberProcess): void {
    const place = this.#places.find((each) => each.process === process);
    if (place === undefined) return;
    place.process = undefined;
    if (this.isQuiet) return;
    const afterMs = this.#random.next() * 1.5 * this.scenario.leaseMs;
    this.world.at(this.world.nowMs + afterMs, () => {
      if (place.process === undefined && !this.isQuiet) this.#start(place);
      return true;
    });
  }
}

function drawScenario(random: Random): Scenario {
  const leaseMs = random.pick([3_000, 15_000, 60_000]);
  const drift = random.pick([0.02, 0.05, 0.1]);
  const shards = random.pick([1, 3, 8, 16, 24]);
  const isCalm = random.chance(0.3);
  return {
    ...{ shards, leaseMs, drift },
    stopTimeoutMs: random.pick([0.5, 2]) * leaseMs,
    maxMoving: random.pick([1, 3, 100]),
    store: {
      hints: random.chance(0.7),
      proves: random.chance(0.2),
      clockStepMs: random.chance(0.3) ? random.next() * 100 : undefined,
    },
    network: {
      latencyMs: random.pick([0.5, 5, 0.01 * leaseMs]),
      spikes: isCalm ? 0 : random.next() * 0.05,
      spikeMs: random.pick([0.1, 0.5, 1.5]) * leaseMs,
      losesRequests: isCalm ? 0 : random.next() * 0.05,
      losesReplies: isCalm ? 0 : random.next() * 0.05,
      duplicates: isCalm ? 0 : random.next() * 0.05,
      errors: isCalm ? 0 : random.next() * 0.05,
    },
    chaosMs: random.between(4, 16) * leaseMs,
    faultEveryMs: random.between(0.2, 2) * leaseMs,
  };
}

/** Rates differ by no more than the drift that the processes were told. */
function drawClock(random: Random, { drift }: Scenario): ClockErrors {
  const rate = () => 1 + (random.next() * 2 - 1) * drift * 0.99;
  return {
    monotonicRate: rate(),
    wallRate: rate(),
    monotonicStartMs: random.next() * 1e7,
    wallStartMs: 1.7e12 + random.next() * 1e6,
    coarseTimers: random.chance(0.5),
    timerLagMs: random.chance(0.5) ? 2 : 0,
  };
}
