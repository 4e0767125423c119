/**
 * One seed: hosts, a store, a network between them, candidates that run the real library, and a
 * plan of faults. It ends with the first violation, or after faults have stopped, somebody has led
 * undisturbed, and everybody has withdrawn in good order.
 */
import type { CandidateInfo } from 'incumbent';
import type { LeaseRecord } from 'incumbent/testing';
import { Coverage } from '../harness/coverage.ts';
import type { Owner } from '../harness/host.ts';
import { Host, perfectClock } from '../harness/host.ts';
import type { Library } from '../harness/library.ts';
import type { Simulation } from '../harness/mechanism.ts';
import { Random } from '../harness/random.ts';
import { Resource } from '../harness/resource.ts';
import { Trace } from '../harness/trace.ts';
import { World } from '../harness/world.ts';
import { Observer, Operator } from './bystanders.ts';
import { CandidateProcess, longestIgnorance } from './candidate.ts';
import { Chaos } from './chaos.ts';
import type { TermEntry } from './guarantees.ts';
import { describe, Guarantees } from './guarantees.ts';
import { Link } from './network.ts';
import type { CandidatePlan, NetworkPlan, Scenario } from './scenario.ts';
import { drawScenario } from './scenario.ts';
import { Server } from './server.ts';
import { WitnessHost } from './witness.ts';

export type Outage = 'none' | 'silent' | 'refuses' | 'read-only';

/** A host, what runs on it now, and what will run on it again. */
export interface Place {
  readonly host: Host;
  readonly link: Link;
  readonly plan: CandidatePlan;
  process: CandidateProcess | undefined;
}

export class LeaseSimulation implements Simulation {
  readonly library: Library;
  readonly scenario: Scenario;
  readonly trace: Trace;
  readonly world: World;
  readonly server: Server;
  readonly resource: Resource;
  readonly coverage: Coverage = new Coverage();
  readonly guarantees: Guarantees;
  readonly places: Place[] = [];
  /** Those that live, and the dead whose children act on. */
  readonly processes: Set<CandidateProcess> = new Set();
  /** Terms whose record was taken from them by hand: S1 cannot be promised for them. */
  readonly disowned: Set<bigint> = new Set();
  /** Terms beside which others may lead: nobody could know of them. */
  readonly unknowable: Set<bigint> = new Set();
  readonly operator: Operator;
  readonly observer: Observer | undefined;
  readonly witness: WitnessHost | undefined;
  network: NetworkPlan;
  outage: Outage = 'none';
  /** Faults are over. */
  isQuiet = false;
  quietSinceMs = 0;
  readonly firstNumber: number = 2 ** 23;
  readonly #random: Random;
  readonly #listed = new Map<number, CandidateInfo>();
  readonly #deadSinceMs = new Map<number, number>();
  #isEnding = false;
  #ledAtTheEnd: TermEntry | undefined;
  #lastNumber = 0;
  #lastArrivalMs = 0;

  constructor(library: Library, seed: number, readable: boolean) {
    this.library = library;
    this.scenario = drawScenario(seed);
    this.#random = new Random(seed, 1);
    this.trace = new Trace(readable);
    this.world = new World(new Random(seed, 2), this.trace);
    this.network = this.scenario.network;
    this.server = new Server(this.world, {
      clockStepMs: this.scenario.store.clockStepMs,
      tellsLives: this.scenario.store.forgets === 'lives',
      clockRate: this.scenario.store.clockRate,
    });
    this.resource = new Resource(this.world, this.coverage);
    this.guarantees = new Guarantees(this);
    this.server.onCommit = (commit, previous) => this.guarantees.onCommit(commit, previous);
    this.world.check = () => this.guarantees.check();
    for (const [index, plan] of this.scenario.hosts.entries()) {
      const stream = 100 * (index + 1);
      const host = new Host(this.world, `n${index + 1}`, plan.clock, new Random(seed, stream));
      const link = new Link(this, host, new Random(seed, stream + 1));
      this.places.push({ host, link, plan: plan.candidate, process: undefined });
    }
    const bystander = (name: string, stream: number) => {
      const host = new Host(this.world, name, perfectClock, new Random(seed, stream));
      return [host, new Link(this, host, new Random(seed, stream + 1))] as const;
    };
    this.operator = new Operator(this, ...bystander('op', 10));
    if (this.scenario.observes) {
      this.observer = new Observer(this, ...bystander('eye', 20), this.scenario.leaseMs);
    }
    if (this.scenario.witnesses) {
      this.witness = new WitnessHost(this, ...bystander('wit', 30), new Random(seed, 32));
    }
  }

  async run(): Promise<void> {
    const watching = this.observer?.watch();
    for (const place of this.places) {
      this.world.at(this.#random.next() * 0.3 * this.scenario.leaseMs, () => {
        this.start(place);
        return true;
      });
    }
    await this.#endure();
    await this.#expectLeader();
    await this.#expectOrderlyEnd();
    this.observer?.stop();
    if (this.world.violation === undefined) await watching;
  }

  // --- the phases ---

  async #endure(): Promise<void> {
    const chaos = new Chaos(this, new Random(this.scenario.seed, 3));
    chaos.begin();
    await this.world.run(this.scenario.chaosMs);
    if (this.world.violation !== undefined) return;
    chaos.end();
    this.network = {
      ...this.network,
      spikes: 0,
      losesRequests: 0,
      losesReplies: 0,
      duplicates: 0,
      errors: 0,
    };
    this.isQuiet = true;
    this.quietSinceMs = Math.max(
      this.world.nowMs,
      this.#lastArrivalMs,
      ...this.places.map(({ host }) => host.pausedUntilMs),
    );
    this.trace.add(this.world.nowMs, '-', 'faults stop');
    await this.world.run(this.quietSinceMs);
    // The operator's orders to processes are undone; everybody takes part.
    for (const place of this.places) {
      if (place.process === undefined) this.start(place);
      else {
        place.process.isHealthy = true;
        place.process.join();
      }
    }
    this.operator.link.heal();
    this.#restoreOrder();
  }

  /**
   * L. Every duration of a candidate is stretched by its slow clock, 1/(1 − ρ). The bound adds up:
   *
   * - A term that is being stopped is renewed for `stopTimeout` at the most and believed for H after
   *   that. Then its lease D runs out, counted by others from their next look (poll and jitter).
   * - A reservation may stand as long as a lease.
   * - Attempts take three operations each and may have to be repeated.
   * - The winner may have to wait out a takeover delay and run its hooks. After hooks that failed it
   *   lets others go first, for a lease at the most.
   * - A candidate may be pausing: after a term, after a failure, or because its application does.
   */
  #leaderBoundMs(): number {
    const { leaseMs, drift } = this.scenario;
    let bound = 0;
    for (const { plan, process } of this.places) {
      if (process === undefined) continue;
      const { timing } = process;
      const stopping = timing.stopTimeoutMs + timing.beliefMs + timing.operationTimeoutMs;
      const waiting = leaseMs + leaseMs + timing.pollEveryMs + 0.1 * timing.renewEveryMs;
      const winning = 12 * timing.operationTimeoutMs + timing.retryBackoffMs;
      const asideMs = plan.hooks > 0 ? leaseMs : 0;
      const fencing = plan.takeoverDelayMs + 20 * plan.hooks * 0.3 * leaseMs + asideMs;
      const pausing = 2 * (1_000 + 1.1 * timing.pollEveryMs + timing.operationTimeoutMs) + leaseMs;
      const health = plan.health ? 4 * timing.renewEveryMs : 0;
      bound = Math.max(bound, stopping + waiting + winning + fencing + pausing + health);
    }
    // Work and hooks that do not heed their signal keep their candidate from campaigning.
    return (bound + longestIgnorance * leaseMs) / (1 - drift);
  }

  async #expectLeader(): Promise<void> {
    const { world } = this;
    if (world.violation !== undefined) return;
    const boundMs = this.#leaderBoundMs();
    const untilMs = this.quietSinceMs + boundMs;
    const leader = () => {
      world.looking = true;
      const found = [...this.guarantees.terms].find((entry) => isSafelyLeading(entry));
      world.looking = false;
      return found;
    };
    for (;;) {
      await world.run(untilMs, () => leader() !== undefined);
      if (world.violation !== undefined) return;
      const entry = leader();
      if (entry === undefined) {
        world.fail(
          'leader',
          `nobody leads ${boundMs.toFixed(0)} ms after faults stopped; the record: ` +
            describe(this.server.current.record),
        );
        return;
      }
      await world.run(world.nowMs + 1.2 * this.scenario.leaseMs, () => entry.term.signal.aborted);
      this.#ledAtTheEnd = entry;
      if (world.violation !== undefined || !entry.term.signal.aborted) return;
      // Faults of before may still end a belief, and some ends are chosen by somebody.
      const disturbedMs = this.scenario.leaseMs / (1 - this.scenario.drift);
      if (this.#isChosen(entry) || world.nowMs < this.quietSinceMs + disturbedMs) continue;
      world.fail(
        'keeping',
        `term ${entry.token} of ${entry.process.name} ended undisturbed: ` +
          String(entry.term.signal.reason),
      );
      return;
    }
  }

  /** An end that somebody chose is no failure to keep a term. */
  #isChosen(entry: TermEntry): boolean {
    const reason: unknown = entry.term.signal.reason;
    const why = reason instanceof Error && 'reason' in reason ? String(reason.reason) : '';
    return !['renewal-failed', 'stalled', 'superseded', 'record-gone'].includes(why);
  }

  async #expectOrderlyEnd(): Promise<void> {
    const { world } = this;
    if (world.violation !== undefined) return;
    if (this.observer !== undefined) this.#checkObserver(this.observer);
    const { leaseMs, drift } = this.scenario;
    this.#isEnding = true;
    const leaving = this.places.map(({ process }) => process).filter((each) => each !== undefined);
    for (const process of leaving) {
      if (this.#random.chance(0.5)) process.withdraw();
      else process.close(() => {});
    }
    // Work settles at once now; what was deaf before hears nothing for at most `longestIgnorance`.
    // Then the seat is given back within three operations, or a write is taken back within two.
    const timeouts = Math.max(...leaving.map(({ timing }) => timing.operationTimeoutMs));
    const boundMs = (longestIgnorance * leaseMs + 8 * timeouts + 0.5 * leaseMs) / (1 - drift);
    const isOver = () =>
      leaving.every((process) => !process.alive || (!process.isCampaigning && !process.isClosing));
    await world.run(world.nowMs + boundMs, isOver);
    if (world.violation !== undefined) return;
    for (const process of leaving) {
      if (process.alive && (process.isCampaigning || process.isClosing)) {
        world.fail(
          'settling',
          `${process.name} was told to leave ${boundMs.toFixed(0)} ms ago, and has not`,
        );
      }
    }
    if (world.violation !== undefined) return;
    const { record } = this.server.current;
    const left = this.#ledAtTheEnd;
    if (left !== undefined && record?.token === left.token && record.holding !== undefined) {
      world.fail(
        'handback',
        `${left.process.name} left, the record still says ${describe(record)}`,
      );
    }
  }

  #checkObserver(observer: Observer): void {
    const { record } = this.server.current;
    const { last } = observer;
    if (record?.holding?.announced !== true || last?.token === record.token) return;
    this.world.fail(
      'observer',
      `term ${record.token} has led for a lease, the last view is ${last?.state} ${last?.token}`,
    );
  }

  /** Requests of before may still be under way, so this looks again until nothing is left to do. */
  #restoreOrder(): void {
    const { record } = this.server.current;
    const ids = new Set((record?.drains ?? []).map(({ id }) => id));
    if (record?.ended === true) this.operator.ask({ kind: 'reopen' });
    for (const id of ids) this.operator.ask({ kind: 'lift', id });
    this.world.at(this.world.nowMs + 0.3 * this.scenario.leaseMs, () => {
      this.#restoreOrder();
      return true;
    });
  }

  // --- what everybody asks it ---

  start(place: Place): true {
    const { host, link, plan } = place;
    const number = this.#lastNumber + 1;
    const random = new Random(this.scenario.seed, 10_000 + number);
    place.process = new CandidateProcess(this, host, link, plan, random);
    this.processes.add(place.process);
    this.trace.add(this.world.nowMs, place.process.name, 'starts');
    place.process.join();
    return true;
  }

  /** A number nobody else has: of a process, or of its child. Above all real process ids. */
  newNumber(): number {
    this.#lastNumber += 1;
    return this.firstNumber + this.#lastNumber;
  }

  exit(process: CandidateProcess): void {
    process.alive = false;
    this.#deadSinceMs.set(process.number, this.world.nowMs);
    this.#listed.delete(process.number);
    if (!process.believes()) this.processes.delete(process);
    const place = this.places.find((each) => each.process === process);
    if (place === undefined) return;
    place.process = undefined;
    if (this.isQuiet && !this.#isEnding) this.world.at(this.world.nowMs, () => this.start(place));
  }

  /** Whether another process runs where this one ran. */
  isReplaced({ host }: CandidateProcess): boolean {
    return this.places.some((place) => place.host === host && place.process !== undefined);
  }

  /** A child dies then. */
  endsAt(child: number, atMs: number): void {
    this.#deadSinceMs.set(child, Math.max(atMs, this.world.nowMs));
  }

  isDead(number: number): boolean {
    const sinceMs = this.#deadSinceMs.get(number);
    return sinceMs !== undefined && sinceMs <= this.world.nowMs;
  }

  processOf(client: Owner | undefined): CandidateProcess | undefined {
    return client instanceof CandidateProcess ? client : undefined;
  }

  /** A request is under way until then. */
  travels(kind: string, untilMs: number): void {
    if (kind === 'swap') this.#lastArrivalMs = Math.max(this.#lastArrivalMs, untilMs);
  }

  /** The newest record of a term. */
  recordOf(token: bigint): LeaseRecord | undefined {
    const { commits } = this.server;
    for (let i = commits.length - 1; i >= 0; i -= 1) {
      const { record } = commits[i] as (typeof commits)[number];
      if (record?.token === token && record.holding !== undefined) return record;
    }
    return undefined;
  }

  enlist(client: { readonly number: number }, candidate: CandidateInfo): void {
    this.#listed.set(client.number, candidate);
  }

  delist(client: { readonly number: number }): void {
    this.#listed.delete(client.number);
  }

  listed(): readonly CandidateInfo[] {
    return [...this.#listed.values()];
  }

  /** Somebody changes the record by hand: nothing can be promised to who held the seat. */
  meddle(record: LeaseRecord | undefined, how: 'lost' | 'overwritten'): void {
    const { current } = this.server;
    const held = current.record?.token ?? 0n;
    // Of a store that forgets nobody takes what it shows then for the truth.
    const isExpected = how !== 'overwritten' && this.scenario.store.forgets !== 'never';
    const disown = (token: bigint) => {
      this.disowned.add(token);
      this.resource.excused.add(token);
      if (!isExpected) this.unknowable.add(token);
    };
    for (const { token } of this.guarantees.terms) disown(token);
    for (let token = held; token > held - 3n && token > 0n; token -= 1n) disown(token);
    this.guarantees.forgetTokens();
    this.resource.forget();
    this.server.swap(current.version, record, undefined);
    if (how === 'lost') this.server.beginLife();
  }

  ended(entry: TermEntry): void {
    const { outcome, process, token } = entry;
    if (outcome === undefined) return;
    this.guarantees.checkOutcome(entry);
    this.trace.add(this.world.nowMs, process.name, `term ${token} ended: ${outcome.reason}`);
    this.coverage.count(`ended: ${outcome.reason}`);
    if (outcome.overrunMs > 0) this.coverage.count('work that overran its belief');
  }
}

function isSafelyLeading({ process, term }: TermEntry): boolean {
  return process.alive && term.isLeading() && !term.signal.aborted;
}
