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
import { Random } from '../harness/random.ts';
import { ReadyCandidate } from '../harness/readiness.ts';
import type { TermEntry } from './guarantees.ts';
import type { QueueProcess } from './process.ts';
import type { Contested, QueueSimulation } from './simulation.ts';

/** The deed of one term's work, besides sending effects. */
type Deed = 'nothing' | 'finish' | 'throw' | 'resign' | 'proclaim' | 'hog';

/** The application's own failure. */
class WorkFailed extends Error {
  override readonly name: string = 'WorkFailed';
}

class Withdrawn extends Error {
  override readonly name: string = 'Withdrawn';
}

/** The longest that work or a hook goes on after it was told to stop, in session timeouts. */
export const longestIgnorance = 2;

/** A process's part in one election: the real library, and an application that does everything. */
export class Candidacy {
  readonly process: QueueProcess;
  readonly contest: Contested;
  /** Its number among those of its process in this election. */
  readonly handle: number;
  readonly timing: Timing;
  running: TermEntry | undefined;
  isClosed = false;
  readonly #sim: QueueSimulation;
  readonly #random: Random;
  readonly #election: Election<unknown>;
  readonly #hookRuns = new Map<bigint, Map<bigint, Set<number>>>();
  readonly #hooksRunning = new Map<bigint, number>();
  #belief: Instant | undefined;
  #beliefToldMs = 0;
  #campaign: AbortController | undefined;
  /** Asked to take part again while it still withdraws. */
  #wantsToJoin = false;
  /** A child of it acts on as the leader, after its crash. */
  #orphanUntilMs = 0;
  readonly #readiness: ReadyCandidate;
  /** By what a witness knows its seat. */
  #seat: SeatIdentity | undefined;

  constructor(
    sim: QueueSimulation,
    contest: Contested,
    process: QueueProcess,
    backend: Backend<unknown>,
    clock: Clock,
    random: Random,
    handle: number,
  ) {
    this.#sim = sim;
    this.handle = handle;
    this.contest = contest;
    this.process = process;
    this.#random = random;
    const lazy = random.chance(0.5) ? 0.7 : 0;
    this.#election = sim.libraryOf(process.number).createElection({
      ...process.plan.timing,
      name: contest.name,
      backend,
      clock,
      random: () => (random.chance(lazy) ? 0 : random.next()),
      // The others of the same id are told apart by it.
      candidate: { id: process.plan.id, ...(handle > 1 ? { addresses: [addressOf(handle)] } : {}) },
      // Else the library warns of a store that is away, on stderr, which here is no news.
      onTrouble: () => {},
    });
    this.timing = this.#election.timing;
    const stream = 1_000_000 + sim.nextReadyStream();
    this.#readiness = new ReadyCandidate(
      new Random(sim.scenario.seed, stream),
      process.plan.timeoutMs,
    );
  }

  get name(): string {
    const which = this.handle > 1 ? ` (${this.handle})` : '';
    return `${this.process.name}/${this.contest.name}${which}`;
  }

  get isCampaigning(): boolean {
    return this.#campaign !== undefined;
  }

  // --- what the faults do to it ---

  join(): void {
    const { process } = this;
    this.#wantsToJoin = true;
    if (this.#campaign !== undefined || !process.alive || process.closingSinceMs !== undefined) {
      return;
    }
    const campaign = new AbortController();
    this.#campaign = campaign;
    void this.#takePart(campaign.signal).then(
      () => {
        this.#campaign = undefined;
        if (this.#wantsToJoin) this.join();
      },
      (error) => this.#sim.world.fail('errors', `${this.name}: ${describeError(error)}`),
    );
  }

  withdraw(): void {
    if (!this.process.alive) return;
    this.#wantsToJoin = false;
    if (this.#campaign === undefined || this.#campaign.signal.aborted) return;
    this.#campaign.abort(new Withdrawn());
  }

  resign(): void {
    // The process may be dead by now.
    if (this.process.alive) this.running?.term.resign();
  }

  async close(): Promise<void> {
    await this.#election.close();
    this.isClosed = true;
  }

  /** Resolves when its work has settled and its application has gone. */
  async settled(): Promise<void> {
    while (this.running !== undefined || this.#campaign !== undefined) {
      await this.#pause(this.process.plan.timeoutMs * 0.1);
    }
  }

  crash(): void {
    this.#leaveChild();
    if (this.#seat !== undefined) this.#sim.witness?.sees(this, this.#seat, this.#orphanUntilMs);
  }

  #leaveChild(): void {
    // A child of the work, which whatever holds it ends within the belief.
    if (this.running === undefined || !this.#mayBelieve() || !this.#random.chance(0.5)) return;
    const leftMs = this.#beliefLeftMs() / Math.max(this.process.host.errors.monotonicRate, 1);
    this.#orphanUntilMs = this.#sim.world.nowMs + 0.99 * this.#random.next() * leftMs;
    this.contest.guarantees.orphans.add(this);
    this.#sim.coverage.count('children that outlived their parent');
  }

  // --- what is judged ---

  get isOrphaned(): boolean {
    return this.#sim.world.nowMs < this.#orphanUntilMs;
  }

  /** Whether it may be believing in a seat, announced or not, right now. */
  believes(): boolean {
    if (!this.process.alive) return this.isOrphaned;
    if (!this.#mayBelieve()) return false;
    const { beliefMs, leaseMs } = this.timing;
    if (this.process.host.setBackAtMs < this.#beliefToldMs - beliefMs - leaseMs) return true;
    return this.running?.term.isLeading() === true;
  }

  hooksDone(token: bigint, predecessor: bigint): number {
    return this.#hookRuns.get(token)?.get(predecessor)?.size ?? 0;
  }

  hooksRunningFor(token: bigint): number {
    return this.#hooksRunning.get(token) ?? 0;
  }

  #mayBelieve(): boolean {
    return this.#belief !== undefined && this.#beliefLeftMs() > 0;
  }

  #beliefLeftMs(): number {
    if (this.#belief === undefined) return Number.NEGATIVE_INFINITY;
    const { host } = this.process;
    return Math.min(
      this.#belief.monotonicMs - host.monotonicMs(),
      this.#belief.wallMs - Math.floor(host.wallMs()),
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
      if (signal.aborted || this.process.closingSinceMs !== undefined) return;
      await this.#pause(this.#random.between(0.02, 0.5) * this.process.plan.timeoutMs, signal);
    }
  }

  async #campaignOnce(signal: AbortSignal): Promise<void> {
    const { plan } = this.process;
    const options: LeadOptions = {
      signal,
      ...this.#readiness.options,
      onBelief: (deadline) => {
        this.#belief = deadline;
        this.#beliefToldMs = this.#sim.world.nowMs;
        this.contest.guarantees.checkBelief(this, deadline);
      },
      onSeat: (seat) => {
        this.#seat = seat;
      },
      takeoverDelay: plan.takeoverDelayMs,
      hookTimeout: plan.hookTimeoutMs,
      onUnclean: Array.from({ length: plan.hooks }, (_, index) => this.#hook(index)),
      ...(plan.health
        ? { health: { check: () => this.#checkHealth(), failures: 1 + this.#random.below(2) } }
        : {}),
    };
    switch (plan.style) {
      case 'lead': {
        const hold = this.#random.chance(0.1) ? this.#random.next() * plan.timeoutMs : 0;
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
          [1, plan.timeoutMs * this.#random.between(0.1, 3)],
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

  async #work(term: Term<unknown>, holdMs = 0): Promise<void> {
    const { world, coverage } = this.#sim;
    const { guarantees } = this.contest;
    const { host } = this.process;
    const entry: TermEntry = {
      candidacy: this,
      term,
      token: term.token,
      sinceMs: world.nowMs,
      led: false,
      stoppedAtMs: undefined,
      holdMs,
      settledAtMs: undefined,
      outcome: undefined,
    };
    world.trace.add(host.presentMs, this.name, `work of term ${term.token} starts`);
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
      guarantees.checkOutcome(entry);
      world.trace.add(world.nowMs, this.name, `term ${term.token} ended: ${outcome.reason}`);
      coverage.count(`ended: ${outcome.reason}`);
      if (outcome.overrunMs > 0) coverage.count('work that overran its belief');
    });
    const effects = new Set<Promise<void>>();
    try {
      await this.#doWork(term, effects);
    } finally {
      await Promise.all(effects);
      over.abort(new Error('the work is over'));
      await preparing;
      entry.settledAtMs = host.presentMs;
      this.running = undefined;
      world.trace.add(host.presentMs, this.name, `work of term ${term.token} settles`);
    }
  }

  /** Ends with the work at the latest. */
  async #prepare(term: Term<unknown>, over: AbortSignal): Promise<void> {
    if (this.#readiness.options.ready === undefined) return;
    const { guarantees } = this.contest;
    const { coverage, isQuiet } = this.#sim;
    const { readiness } = guarantees;
    const shown = guarantees.shownOf(term.token);
    if (shown !== undefined) readiness.begin(this.name, term, shown.ready);
    const pause = (ms: number) => this.#pause(ms, over);
    const isOver = () => over.aborted;
    await this.#readiness.prepare(term, readiness, coverage, isQuiet, pause, isOver, () =>
      guarantees.checkReady(this, term.token),
    );
  }

  async #doWork(term: Term<unknown>, effects: Set<Promise<void>>): Promise<void> {
    const random = this.#random;
    const { isQuiet } = this.#sim;
    const { host, plan } = this.process;
    const { timeoutMs } = plan;
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
    const deedAtMs = host.monotonicMs() + random.next() ** 2 * 2 * timeoutMs;
    const everyMs = timeoutMs * random.between(0.05, 0.3);
    /** Whether this application stops when `assertLeading` tells it to. */
    const heeds = random.chance(0.7);
    let done = false;
    while (!term.signal.aborted) {
      this.#sendEffect(term, effects, heeds);
      if (!done && deed !== 'nothing' && host.monotonicMs() >= deedAtMs) {
        done = true;
        if (this.#sim.isQuiet) continue;
        if (deed === 'finish') return;
        if (deed === 'throw') throw new WorkFailed('the work failed');
        if (deed === 'resign') term.resign();
        if (deed === 'proclaim') await this.#proclaim(term);
        if (deed === 'hog') this.#hog(random.next() * 1.5 * this.timing.beliefMs);
        continue;
      }
      await this.#pause(everyMs, term.signal);
    }
    const dallyMs = isQuiet
      ? 0
      : timeoutMs *
        random.weighted([
          [6, 0],
          [2, random.next() * 0.1],
          [2, random.next()],
          [1, random.next() * longestIgnorance],
        ]);
    const untilMs = host.monotonicMs() + dallyMs;
    while (host.monotonicMs() < untilMs && !this.#sim.isQuiet) {
      this.#sendEffect(term, effects, false);
      await this.#pause(Math.min(everyMs, dallyMs));
    }
  }

  /** Every effect carries the token; most are sent only if enough belief is left for the way. */
  #sendEffect(term: Term<unknown>, effects: Set<Promise<void>>, heeds: boolean): void {
    const { world } = this.#sim;
    const { guarantees, resource } = this.contest;
    const { host } = this.process;
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
    const wayMs = (isPromised ? marginMs : this.#random.next() * this.timing.leaseMs) / rate;
    const travelMs = this.#random.chance(0.5) ? wayMs : wayMs * this.#random.next();
    const effect = {
      token: term.token,
      // Without a wait, two may be promised the same time.
      isPromised: isPromised && !host.isAhead && this.#sim.scenario.waits,
      from: this.name,
      sentAtMs: host.presentMs,
    };
    const arrived = new Promise<void>((resolve) => {
      world.at(host.presentMs, () => {
        if (!this.process.alive) return false;
        world.at(world.nowMs + travelMs, () => {
          resource.arrive(effect);
          return host.deliver(this.process, resolve);
        });
        return false;
      });
    }).then(() => void effects.delete(arrived));
    effects.add(arrived);
  }

  async #proclaim(term: Term<unknown>): Promise<void> {
    const metadata = { build: String(this.#random.below(1e6)) };
    try {
      await term.proclaim({ metadata });
    } catch (error) {
      if (!term.signal.aborted) throw error;
      return;
    }
    this.#sim.coverage.count('proclamations');
    this.contest.guarantees.checkProclaimed(this, term.token, metadata.build);
  }

  #hog(ms: number): void {
    this.#sim.coverage.count('event loops blocked by work');
    this.#sim.world.trace.add(this.process.host.presentMs, this.name, 'blocks its event loop');
    this.process.host.stallInTurn(ms);
  }

  #hook(index: number): FenceHook {
    return async (predecessor, context) => {
      const { world, coverage } = this.#sim;
      const { host, plan } = this.process;
      const { token, signal } = context;
      world.trace.add(host.presentMs, this.name, `hook ${index + 1} of term ${token} starts`);
      coverage.count('hooks run');
      if (!host.isAhead && !this.#mayBelieve()) {
        world.fail('fencing', `${this.name}: a hook of term ${token} starts without belief`);
      }
      if (!host.isAhead) this.contest.guarantees.checkHook(this, predecessor.token);
      this.#hooksRunning.set(token, this.hooksRunningFor(token) + 1);
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
        if (manner === 'hogs' && !this.#sim.isQuiet)
          this.#hog(this.#random.next() * this.timing.beliefMs);
        await this.#pause(this.#random.next() * 0.3 * plan.timeoutMs);
        if (manner === 'slow') await this.#pause(2 * plan.timeoutMs, signal);
        if (manner === 'deaf') {
          await this.#pause(this.#random.next() * (longestIgnorance - 0.3) * plan.timeoutMs);
        }
        const runs = this.#hookRuns.get(token) ?? new Map<bigint, Set<number>>();
        this.#hookRuns.set(token, runs);
        const done = runs.get(predecessor.token) ?? new Set<number>();
        runs.set(predecessor.token, done.add(index));
      } finally {
        this.#hooksRunning.set(token, this.hooksRunningFor(token) - 1);
        world.trace.add(host.presentMs, this.name, `hook ${index + 1} of term ${token} ends`);
      }
    };
  }

  async #checkHealth(): Promise<boolean> {
    await this.#pause(this.#random.next() * 0.3 * this.timing.renewEveryMs);
    return this.process.isHealthy;
  }

  /** A wait of the application, on its host's clock; ends early when `signal` aborts. */
  #pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const timer = this.process.host.setTimer(
        this.process,
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
    if (code === 'CLOSED') return this.process.closingSinceMs !== undefined;
    // Trying once, and a first question to the store, end with the store's trouble.
    return (
      this.process.plan.style === 'campaign' &&
      (code === 'STORE_UNAVAILABLE' || code === 'OPERATION_TIMEOUT')
    );
  }
}

/** The address in the record of a candidate that is not the first of its process. */
export function addressOf(handle: number): string {
  return `handle:${handle}`;
}

function ignoreWorkFailed(error: unknown): void {
  const isOwn = error instanceof WorkFailed;
  const isEnd =
    error instanceof Error && ['NotLeadingError', 'TermEndedError'].includes(error.name);
  if (!isOwn && !isEnd) throw error;
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.name}: ${error.message}${cause}`;
}
