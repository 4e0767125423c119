import type {
  Backend,
  Clock,
  Election,
  FenceHook,
  Instant,
  LeadOptions,
  Term,
  Timing,
} from 'incumbent';
import type { SeatIdentity } from 'incumbent/backend';
import type { Host } from '../harness/host.ts';
import { Random } from '../harness/random.ts';
import { ReadyCandidate } from '../harness/readiness.ts';
import { inCopies } from './copies.ts';
import type { Attempt, TermEntry } from './guarantees.ts';
import type { Client, Link } from './network.ts';
import { storeOf } from './network.ts';
import type { CandidatePlan } from './scenario.ts';
import type { LeaseSimulation } from './simulation.ts';

/** The deed of one term's work, besides sending effects. */
type Deed = 'nothing' | 'finish' | 'throw' | 'resign' | 'proclaim' | 'hog';

/** The application's own failure. */
class WorkFailed extends Error {
  override readonly name: string = 'WorkFailed';
}

/** The longest that work or a hook goes on after it was told to stop, in leases. */
export const longestIgnorance = 2.5;

/**
 * One process of an application that takes part in the election, from its start to its exit or
 * crash. It runs the real library on this host's clock and link. Its application does everything
 * that applications do, the careless ones too.
 */
export class CandidateProcess implements Client {
  readonly name: string;
  readonly number: number;
  readonly host: Host;
  readonly link: Link;
  readonly plan: CandidatePlan;
  readonly timing: Timing;
  readonly operationTimes: number[] = [];
  readonly futileWrites: number[] = [];
  alive = true;
  isClosed = false;
  isHealthy = true;
  running: TermEntry | undefined;
  /** Token of the seat it took last. */
  seatToken = 0n;
  /** Nonces of its writes since it last heard that one was applied. */
  readonly unanswered: Set<string> = new Set();
  /** Token of the seat it asked for last. */
  triedToken = 0n;
  /** Its last attempt to take the seat, until it is known what has become of that. */
  attempt: Attempt | undefined;
  /** Token of a seat that it has read to be revoked, before it knew whether it has it. */
  revokedToken: bigint | undefined;
  /** A write of it was refused, so what it reads next tells it whose the seat is. */
  wasRefused = false;
  closingSinceMs: number | undefined;
  readonly #sim: LeaseSimulation;
  readonly #random: Random;
  readonly #clock: Clock;
  readonly #election: Election<bigint>;
  readonly #hookRuns = new Map<bigint, Map<bigint, Set<number>>>();
  readonly #hooksRunning = new Map<bigint, number>();
  #belief: Instant | undefined;
  #beliefToldMs = 0;
  #campaign: AbortController | undefined;
  #wantsToJoin = false;
  #orphanUntilMs = 0;
  #child: number | undefined;
  readonly #readiness: ReadyCandidate;
  /** By what a witness knows its seat. */
  #seat: SeatIdentity | undefined;

  constructor(sim: LeaseSimulation, host: Host, link: Link, plan: CandidatePlan, random: Random) {
    this.#sim = sim;
    this.host = host;
    this.link = link;
    this.plan = plan;
    this.number = sim.newNumber();
    this.name = `${host.name}.${this.number - sim.firstNumber}`;
    this.#random = random;
    this.#clock = host.clockOf(this);
    const backend: Backend<bigint> = sim.library.leaseBackend({
      kind: 'simulated',
      description: 'the simulated store',
      openStore: () => storeOf(sim, this),
      guard: (_scope, _store, token) => token,
    });
    const lazy = random.chance(0.5) ? 0.7 : 0;
    this.#election = sim.library.createElection({
      ...plan.timing,
      name: 'seat',
      backend: sim.scenario.copies ? inCopies(backend) : backend,
      clock: this.#clock,
      // Often no jitter at all: then a successor comes as early as it may.
      random: () => (random.chance(lazy) ? 0 : random.next()),
      candidate: { id: plan.id },
      // Else the library warns of a store that is away, on stderr, which here is no news.
      onTrouble: () => {},
    });
    this.timing = this.#election.timing;
    const ready = new Random(sim.scenario.seed, 20_000 + this.number - sim.firstNumber);
    this.#readiness = new ReadyCandidate(ready, plan.timing.lease);
  }

  // --- what the faults do to it ---

  get isCampaigning(): boolean {
    return this.#campaign !== undefined;
  }

  /** `close()` was called and has not resolved. */
  get isClosing(): boolean {
    return this.closingSinceMs !== undefined && !this.isClosed;
  }

  /** Takes part until withdrawn. */
  join(): void {
    this.#wantsToJoin = true;
    if (this.#campaign !== undefined || !this.alive || this.closingSinceMs !== undefined) return;
    const campaign = new AbortController();
    this.#campaign = campaign;
    void this.#takePart(campaign.signal).then(
      () => {
        this.#campaign = undefined;
        this.#sim.guarantees.checkWithdrawn(this);
        // Asked to join again while it was still withdrawing.
        if (this.#wantsToJoin) this.join();
      },
      (error) => this.#sim.world.fail('errors', `${this.name}: ${describeError(error)}`),
    );
  }

  withdraw(): void {
    if (!this.alive) return;
    this.#wantsToJoin = false;
    if (this.#campaign === undefined || this.#campaign.signal.aborted) return;
    this.#campaign.abort(new Withdrawn());
  }

  resign(): void {
    // The process may be dead by now.
    if (this.alive) this.running?.term.resign();
  }

  /** Leaves in good order: closes, and exits once its work has settled. */
  close(exited: () => void): void {
    if (!this.alive || this.closingSinceMs !== undefined) return;
    this.closingSinceMs = this.#sim.world.nowMs;
    const again = this.#random.chance(0.2);
    void this.#election
      .close()
      .then(() => (again ? this.#election.close() : undefined))
      .then(async () => {
        this.isClosed = true;
        while (this.running !== undefined || this.#campaign !== undefined) {
          await this.#pause(this.plan.timing.lease * 0.1);
        }
        this.#sim.exit(this);
        exited();
      });
  }

  /** From one moment to the next: nothing of it ever runs again. */
  crash(): void {
    if (!this.alive) return;
    const believed = this.mayBelieve();
    this.alive = false;
    const isFencing = [...this.#hooksRunning.values()].some((running) => running > 0);
    if ((this.#child !== undefined || isFencing) && believed) {
      // The child, or the program of a hook, acts on: whatever holds it ends it within the belief.
      const leftMs = this.#beliefLeftMs() / Math.max(this.host.errors.monotonicRate, 1);
      this.#orphanUntilMs = this.#sim.world.nowMs + 0.99 * this.#random.next() * leftMs;
      this.#sim.coverage.count('children and hooks that outlived their parent');
    }
    const child = this.#child;
    if (child !== undefined) this.#sim.endsAt(child, this.#orphanUntilMs);
    this.#sim.exit(this);
    if (this.#seat !== undefined) this.#sim.witness?.sees(this, this.#seat, this.#orphanUntilMs);
  }

  // --- what is judged ---

  /** Whether it, or somebody who acts for it, may be acting as the leader right now. */
  believes(): boolean {
    if (!this.alive) return this.#sim.world.nowMs < this.#orphanUntilMs;
    if (!this.mayBelieve()) return false;
    // A clock that was set back has shortened the belief, and only the library knows to what.
    const { beliefMs, leaseMs } = this.timing;
    if (this.host.setBackAtMs < this.#beliefToldMs - beliefMs - leaseMs) return true;
    return this.running?.term.isLeading() === true;
  }

  /** By what the library has told at the last confirmation; it may know better by now. */
  mayBelieve(): boolean {
    return this.#belief !== undefined && this.#beliefLeftMs() > 0;
  }

  describeBelief(): string {
    if (!this.alive) return `${this.name}: a child of it acts on`;
    return `${this.name}: ${this.#beliefLeftMs().toFixed(3)} ms left`;
  }

  hooksDone(token: bigint, predecessor: bigint): number {
    return this.#hookRuns.get(token)?.get(predecessor)?.size ?? 0;
  }

  hooksRunningFor(token: bigint): number {
    return this.#hooksRunning.get(token) ?? 0;
  }

  #beliefLeftMs(): number {
    if (this.#belief === undefined) return Number.NEGATIVE_INFINITY;
    return Math.min(
      this.#belief.monotonicMs - this.host.monotonicMs(),
      this.#belief.wallMs - Math.floor(this.host.wallMs()),
    );
  }

  // --- the application ---

  async #takePart(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.isClosed) {
      try {
        await this.#campaignOnce(signal);
      } catch (error) {
        if (!this.#isExpected(error, signal)) {
          this.#sim.world.fail('errors', `${this.name}: ${describeError(error)}`);
        }
      }
      if (signal.aborted || this.closingSinceMs !== undefined) return;
      await this.#pause(this.#random.between(0.02, 0.5) * this.plan.timing.lease, signal);
    }
  }

  async #campaignOnce(signal: AbortSignal): Promise<void> {
    const { plan } = this;
    const options: LeadOptions = {
      signal,
      ...this.#readiness.options,
      onBelief: (deadline) => {
        this.#belief = deadline;
        this.#beliefToldMs = this.#sim.world.nowMs;
        if (deadline !== undefined) this.#sim.guarantees.checkBelief(this);
      },
      onSeat: (seat) => {
        this.#seat = seat;
      },
      actors: plan.actors,
      takeoverDelay: plan.takeoverDelayMs,
      hookTimeout: plan.hookTimeoutMs,
      onUnclean: Array.from({ length: plan.hooks }, (_, index) => this.#hook(index)),
      ...(plan.health
        ? { health: { check: () => this.#checkHealth(), failures: 1 + this.#random.below(2) } }
        : {}),
    };
    switch (plan.style) {
      case 'lead': {
        const hold = this.#random.chance(0.1) ? this.#random.next() * plan.timing.lease : 0;
        await this.#election.lead((term) => this.#work(term, hold), {
          ...options,
          holdAtLeast: hold,
        });
        return;
      }
      case 'campaign': {
        const wait = this.#random.weighted<number | undefined>([
          [4, undefined],
          [1, 0],
          [1, plan.timing.lease * this.#random.between(0.1, 3)],
        ]);
        const term = await this.#election.campaign({
          ...options,
          ...(wait === undefined ? {} : { wait }),
        });
        await this.#work(term).catch(ignoreWorkFailed);
        await term[Symbol.asyncDispose]();
        return;
      }
      case 'terms':
        for await (const term of this.#election.terms(options)) {
          await this.#work(term).catch(ignoreWorkFailed);
          if (this.#random.chance(0.2)) break;
        }
        return;
      default:
        return plan.style satisfies never;
    }
  }

  async #work(term: Term<bigint>, holdMs = 0): Promise<void> {
    const { world, guarantees, coverage } = this.#sim;
    const entry: TermEntry = {
      process: this,
      term,
      token: term.token,
      sinceMs: world.nowMs,
      led: false,
      stoppedAtMs: undefined,
      mustEnd: false,
      holdMs,
      settledAtMs: undefined,
      outcome: undefined,
    };
    world.trace.add(this.host.presentMs, this.name, `work of term ${term.token} starts`);
    coverage.count('terms');
    if (this.running !== undefined) {
      world.fail('overlap', `${this.name} works for terms ${this.running.token} and ${term.token}`);
    }
    guarantees.checkBeginning(entry);
    const over = new AbortController();
    term.signal.addEventListener('abort', () => over.abort(term.signal.reason), { once: true });
    const preparing = this.#prepare(term, over.signal);
    this.running = entry;
    guarantees.terms.add(entry);
    void term.ended.then((outcome) => {
      entry.outcome = outcome;
      this.#sim.ended(entry);
    });
    const effects = new Set<Promise<void>>();
    try {
      await this.#doWork(term, effects);
    } finally {
      await Promise.all(effects);
      over.abort(new Error('the work is over'));
      await preparing;
      this.#endChild();
      entry.settledAtMs = this.host.presentMs;
      this.running = undefined;
      world.trace.add(this.host.presentMs, this.name, `work of term ${term.token} settles`);
    }
  }

  /** Ends with the work at the latest. */
  async #prepare(term: Term<bigint>, over: AbortSignal): Promise<void> {
    if (this.#readiness.options.ready === undefined) return;
    const { guarantees, coverage, isQuiet } = this.#sim;
    const { readiness } = guarantees;
    const record = this.#sim.recordOf(term.token);
    if (record?.holding !== undefined) readiness.begin(this.name, term, record.holding.ready);
    const pause = (ms: number) => this.#pause(ms, over);
    const isOver = () => over.aborted;
    await this.#readiness.prepare(term, readiness, coverage, isQuiet, pause, isOver, () =>
      this.#requireRecord(term, 'ready', (holding) => holding.ready !== false),
    );
  }

  async #doWork(term: Term<bigint>, effects: Set<Promise<void>>): Promise<void> {
    const random = this.#random;
    const { isQuiet } = this.#sim;
    const leaseMs = this.plan.timing.lease;
    const deed = isQuiet
      ? 'nothing'
      : random.weighted<Deed>([
          [12, 'nothing'],
          [2, 'finish'],
          [1, 'throw'],
          [2, 'resign'],
          [2, 'proclaim'],
          [1, 'hog'],
        ]);
    const deedAtMs = this.host.monotonicMs() + random.next() ** 2 * 2 * leaseMs;
    const everyMs = leaseMs * random.between(0.05, 0.4);
    /** Whether this application stops when `assertLeading` tells it to. */
    const heeds = random.chance(0.7);
    if (this.plan.actors === 'declared' && random.chance(0.8)) await this.#startChild(term);
    let done = false;
    while (!term.signal.aborted) {
      this.#sendEffect(term, effects, heeds);
      if (!done && deed !== 'nothing' && this.host.monotonicMs() >= deedAtMs) {
        done = true;
        if (this.#sim.isQuiet) continue;
        if (deed === 'finish') return;
        if (deed === 'throw') throw new WorkFailed('the work failed');
        if (deed === 'resign') term.resign();
        if (deed === 'proclaim') await this.#proclaim(term);
        if (deed === 'hog') this.#hog(random.next() * 1.5 * leaseMs);
        continue;
      }
      await this.#pause(everyMs, term.signal);
    }
    const dallyMs = isQuiet
      ? 0
      : leaseMs *
        random.weighted([
          [6, 0],
          [2, random.next() * 0.1],
          [2, random.next()],
          [1, random.next() * longestIgnorance],
        ]);
    const untilMs = this.host.monotonicMs() + dallyMs;
    while (this.host.monotonicMs() < untilMs && !this.#sim.isQuiet) {
      this.#sendEffect(term, effects, false);
      await this.#pause(Math.min(everyMs, dallyMs));
    }
  }

  /** Every effect carries the token; most are sent only if enough belief is left for the way. */
  #sendEffect(term: Term<bigint>, effects: Set<Promise<void>>, heeds: boolean): void {
    const { world, guarantees, resource } = this.#sim;
    const { host } = this;
    const rate = host.errors.monotonicRate;
    const marginMs = this.#random.next() * 0.5 * this.timing.beliefMs;
    let isPromised = false;
    try {
      term.assertLeading(marginMs);
      isPromised = true;
      guarantees.checkNow(this);
    } catch (error) {
      if (heeds) throw error;
    }
    // Under way for as long as the margin allows, by the sender's clock: or any other time.
    const wayMs = (isPromised ? marginMs : this.#random.next() * this.timing.leaseMs) / rate;
    const travelMs = this.#random.chance(0.5) ? wayMs : wayMs * this.#random.next();
    const effect = {
      token: term.token,
      isPromised: isPromised && !host.isAhead,
      from: this.name,
      sentAtMs: host.presentMs,
    };
    const arrived = new Promise<void>((resolve) => {
      world.at(host.presentMs, () => {
        if (!this.alive) return false;
        world.at(world.nowMs + travelMs, () => {
          resource.arrive(effect);
          return host.deliver(this, resolve);
        });
        return false;
      });
    }).then(() => void effects.delete(arrived));
    effects.add(arrived);
  }

  async #proclaim(term: Term<bigint>): Promise<void> {
    const metadata = { build: String(this.#random.below(1e6)) };
    try {
      await term.proclaim({ metadata });
    } catch (error) {
      if (!term.signal.aborted) throw error;
      return;
    }
    this.#sim.coverage.count('proclamations');
    this.#requireRecord(
      term,
      'proclaim',
      (holding) => holding.candidate.metadata['build'] === metadata.build,
    );
  }

  #hog(ms: number): void {
    this.#sim.coverage.count('event loops blocked by work');
    this.#sim.world.trace.add(this.host.presentMs, this.name, 'blocks its event loop');
    this.host.stallInTurn(ms);
  }

  async #startChild(term: Term<bigint>): Promise<void> {
    const child = this.#sim.newNumber();
    try {
      if (this.#random.chance(0.2)) await term.declareActors([]);
      const self = this.#random.chance(0.5) ? [{ pid: process.pid }] : [];
      await term.declareActors([...self, { pid: child }]);
    } catch (error) {
      if (!term.signal.aborted) throw error;
      this.#sim.endsAt(child, 0);
      return;
    }
    // The gate opens: from here on the child acts.
    this.#child = child;
    this.#sim.coverage.count('children declared');
    if (this.#random.chance(0.3)) {
      // It ends by itself, while the process that declared it goes on.
      const { world } = this.#sim;
      const endsAtMs = world.nowMs + this.#random.next() * this.plan.timing.lease;
      this.#sim.endsAt(child, endsAtMs);
      world.at(endsAtMs, () => {
        if (this.#child === child) this.#child = undefined;
        return false;
      });
    }
    if (!this.#sim.scenario.store.proves) return;
    this.#requireRecord(term, 'declareActors', (holding) =>
      (holding.actors ?? []).some((actor) => actor['number'] === child),
    );
  }

  #endChild(): void {
    if (this.#child === undefined) return;
    this.#sim.endsAt(this.#child, 0);
    this.#child = undefined;
  }

  #requireRecord(
    term: Term<bigint>,
    what: string,
    holds: (
      holding: NonNullable<NonNullable<ReturnType<LeaseSimulation['recordOf']>>['holding']>,
    ) => boolean,
  ): void {
    const record = this.#sim.recordOf(term.token);
    if (record?.holding === undefined || holds(record.holding)) return;
    this.#sim.world.fail(
      'proclaimed',
      `${this.name}: ${what} resolved, the record shows something else`,
    );
  }

  #hook(index: number): FenceHook {
    return async (predecessor, context) => {
      const { world, coverage } = this.#sim;
      const { token, signal } = context;
      world.trace.add(this.host.presentMs, this.name, `hook ${index + 1} of term ${token} starts`);
      coverage.count('hooks run');
      if (!this.host.isAhead && !this.mayBelieve()) {
        world.fail('fencing', `${this.name}: a hook of term ${token} starts without belief`);
      }
      this.#hooksRunning.set(token, this.hooksRunningFor(token) + 1);
      const leaseMs = this.plan.timing.lease;
      try {
        const manner = this.#sim.isQuiet
          ? 'quick'
          : this.#random.weighted<'quick' | 'throws' | 'slow' | 'deaf' | 'hogs'>([
              [10, 'quick'],
              [1, 'throws'],
              [1, 'slow'],
              [1, 'deaf'],
              [1, 'hogs'],
            ]);
        if (manner === 'throws') {
          coverage.count('hooks that failed');
          throw new Error('the hook failed');
        }
        if (manner === 'hogs' && !this.#sim.isQuiet) this.#hog(this.#random.next() * 1.2 * leaseMs);
        await this.#pause(this.#random.next() * 0.3 * leaseMs);
        if (manner === 'slow') await this.#pause(2 * leaseMs, signal);
        if (manner === 'deaf')
          await this.#pause(this.#random.next() * (longestIgnorance - 0.3) * leaseMs);
        const runs = this.#hookRuns.get(token) ?? new Map<bigint, Set<number>>();
        this.#hookRuns.set(token, runs);
        const done = runs.get(predecessor.token) ?? new Set<number>();
        runs.set(predecessor.token, done.add(index));
      } finally {
        this.#hooksRunning.set(token, this.hooksRunningFor(token) - 1);
        world.trace.add(this.host.presentMs, this.name, `hook ${index + 1} of term ${token} ends`);
      }
    };
  }

  async #checkHealth(): Promise<boolean> {
    await this.#pause(this.#random.next() * 0.05 * this.plan.timing.lease);
    return this.isHealthy;
  }

  /** A wait of the application, on its host's clock; ends early when `signal` aborts. */
  #pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const timer = this.host.setTimer(
        this,
        () => {
          signal?.removeEventListener('abort', stop);
          resolve();
        },
        ms,
      );
      const stop = () => {
        timer.cancel();
        resolve();
      };
      signal?.addEventListener('abort', stop, { once: true });
    });
  }

  #isExpected(error: unknown, signal: AbortSignal): boolean {
    if (error instanceof WorkFailed || error instanceof Withdrawn) return true;
    if (signal.aborted && error === signal.reason) return true;
    if (!(error instanceof Error)) return false;
    const code = 'code' in error ? error.code : undefined;
    if (code === 'ELECTION_ENDED' || code === 'NOT_ELECTED') return true;
    if (code === 'CLOSED') return this.closingSinceMs !== undefined;
    // Trying once, and a first question to the store, end with the store's trouble.
    return (
      this.plan.style === 'campaign' &&
      (error.name === 'StoreTrouble' || code === 'OPERATION_TIMEOUT')
    );
  }
}

class Withdrawn extends Error {
  override readonly name: string = 'Withdrawn';
}

function ignoreWorkFailed(error: unknown): void {
  const isOwn = error instanceof WorkFailed;
  const isEnd =
    error instanceof Error && ['NotLeadingError', 'TermEndedError'].includes(error.name);
  if (!isOwn && !isEnd) throw error;
}

function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
