/**
 * One seed: hosts, a store, processes that share shards by the real packages, and a plan of faults. It
 * ends with the first violation, or after faults have stopped, the shards are shared evenly, one more
 * process has joined, and all have left in good order.
 */

import type { LeaseRecord } from 'incumbent/testing';
import { Coverage } from '../harness/coverage.ts';
import type { ClockErrors, Owner } from '../harness/host.ts';
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
import { damagedShards, Link, Server } from './store.ts';

interface Scenario {
  readonly shards: number;
  readonly leaseMs: number;
  readonly drift: number;
  readonly stopTimeoutMs: number;
  readonly maxMoving: number;
  /** Shards have names, and the list of them changes. */
  readonly isNamed: boolean;
  /** Records of slots are set back and damaged by hand. */
  readonly loses: boolean;
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
  /** The shards that are in the list now. */
  readonly listed: Set<number>;
  readonly #places: Place[] = [];
  readonly #random: Random;
  readonly #seed: number;
  readonly #deadSinceMs = new Map<number, number>();
  /** The last place takes part at the end only. */
  readonly #late: Place;
  #lastNumber = 0;
  /** Nothing else is lost before then. */
  #nextLossMs = 0;
  /** A slot that is set back when the next coordinator has won. */
  #toSetBack: { readonly name: string; readonly record: LeaseRecord } | undefined;
  #headToken = 0n;

  constructor(library: Library, seed: number, readable: boolean) {
    this.library = library;
    this.#seed = seed;
    this.#random = new Random(seed, 1);
    this.trace = new Trace(readable);
    this.world = new World(new Random(seed, 2), this.trace);
    this.server = new Server(this.world);
    this.scenario = drawScenario(new Random(seed, 3), new Random(seed, 4));
    this.listed = new Set(Array.from({ length: this.scenario.shards }, (_, shard) => shard));
    const { isNamed, loses } = this.scenario;
    this.guarantees = new Guarantees(this.world, this.coverage, library, !isNamed && !loses);
    this.server.onCommit = (name, record, writer) => this.#onCommit(name, record, writer);
    this.world.check = () => this.guarantees.check();
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

  #onCommit(name: string, record: LeaseRecord, writer: Owner): void {
    this.guarantees.onCommit(name, record);
    if (!this.scenario.loses || this.isQuiet) return;
    if (name === 'set' && record.token > this.#headToken) {
      this.#headToken = record.token;
      const loss = this.#toSetBack;
      this.#toSetBack = undefined;
      // Right after a win, and before the first look of that coordinator.
      if (loss !== undefined)
        this.#lose('a grant, for the next coordinator', loss.name, loss.record);
    }
    if (this.#toSetBack !== undefined || this.world.nowMs < this.#nextLossMs) return;
    const [before] = this.server.cell(name).earlier;
    const given = this.#highestIn(name, record);
    if (given === undefined || given <= (this.#highestIn(name, before) ?? given)) return;
    if (!this.#random.chance(0.1)) return;
    // The coordinator dies before it has forgotten the shard in the slot of before.
    const process = this.#members.find((each) => each === writer);
    if (process === undefined || before === undefined) return;
    this.#toSetBack = { name, record: before };
    this.kill(process);
  }

  #highestIn(name: string, record: LeaseRecord | undefined): bigint | undefined {
    if (record?.shards === undefined || !/\/\d+$/.test(name)) return undefined;
    return this.library.decodeSlot(Buffer.from(record.shards, 'base64'), name).highest;
  }

  /** One loss at a time: those of before are over in two leases. */
  #lose(what: string, name: string, record: LeaseRecord | undefined, isDamaged = false): void {
    const { leaseMs, drift } = this.scenario;
    this.#nextLossMs = this.world.nowMs + (3 * leaseMs) / (1 - drift);
    this.coverage.count(`loss: ${what}`);
    this.trace.add(this.world.nowMs, '-', 'loss', () => `${what}: ${name}`);
    this.server.put(name, record, isDamaged);
  }

  #loss(): void {
    if (this.world.nowMs < this.#nextLossMs || this.#toSetBack !== undefined) return;
    const names = [...this.server.cells.keys()].filter((name) => /\/\d+$/.test(name));
    const held = names.filter((name) => this.server.cell(name).record?.holding !== undefined);
    if (held.length === 0) return;
    const name = this.#random.pick(held);
    const { record, earlier } = this.server.cell(name);
    const what = this.#random.pick(['set back', 'set back', 'deleted', 'damaged', 'unreadable']);
    if (what === 'deleted') this.#lose(what, name, undefined);
    else if (what === 'damaged' && record)
      this.#lose(what, name, { ...record, shards: damagedShards });
    else if (what === 'unreadable') {
      this.#lose(what, name, record, true);
      // An operator deletes it.
      const untilMs = this.world.nowMs + this.#random.next() * 2.5 * this.scenario.leaseMs;
      this.world.at(untilMs, () => {
        if (this.server.cell(name).isDamaged) this.server.put(name, undefined);
        return true;
      });
    } else if (earlier.length > 0) this.#lose(what, name, this.#random.pick(earlier));
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
      [this.scenario.loses ? 3 : 0, 'loss'],
      [this.scenario.isNamed ? 3 : 0, 'list'],
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
    else if (fault === 'resign') process?.term(random.below(this.scenario.shards))?.resign();
    else if (fault === 'loss') this.#loss();
    else if (fault === 'list') this.#changeList();
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

  #changeList(): void {
    const shard = this.#random.below(this.scenario.shards);
    if (!this.listed.has(shard)) this.listed.add(shard);
    else if (this.listed.size > 1) this.listed.delete(shard);
  }

  async #calm(): Promise<void> {
    this.isQuiet = true;
    for (const [name, { isDamaged }] of this.server.cells) {
      if (isDamaged) this.server.put(name, undefined);
    }
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
    const isFree = ({ process }: Place) => process === undefined;
    // Operators may have drained all of them. The next one starts when the first has left.
    if (this.#members.length === 0) {
      const untilMs = this.world.nowMs + this.#boundMs;
      await this.world.run(untilMs, () => this.#places.some(isFree));
    }
    for (const place of this.#places.filter(isFree)) this.#start(place);
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
      const shards = this.listed.size;
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
      const exact = (this.listed.size * weight) / weights;
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
      const exact = (this.listed.size * process.plan.weight) / weights;
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

function drawScenario(random: Random, others: Random): Scenario {
  const leaseMs = random.pick([3_000, 15_000, 60_000]);
  const drift = random.pick([0.02, 0.05, 0.1]);
  const shards = random.pick([1, 3, 8, 16, 24]);
  const isCalm = random.chance(0.3);
  return {
    ...{ shards, leaseMs, drift },
    stopTimeoutMs: random.pick([0.5, 2]) * leaseMs,
    maxMoving: random.pick([1, 3, 100]),
    isNamed: others.chance(0.2),
    loses: others.chance(0.25),
    store: {
      hints: random.chance(0.7),
      proves: random.chance(0.2),
      readsAll: others.chance(0.85),
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
