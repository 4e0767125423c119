/**
 * One candidacy: waiting → won → fencing → announced, again and again. Everything that has an order
 * in time between "the seat is ours" and "work may start" is here.
 */
import type { CandidateInfo } from './candidate.ts';
import type { Instant } from './clock.ts';
import type { Actor, Contest, Scope, Seat, SeatState } from './contest.ts';
import type { DiagnosticSource } from './diagnostics.ts';
import { publish } from './diagnostics.ts';
import { TakeoverFailedError } from './errors.ts';
import type { HealthOptions } from './health.ts';
import { HealthGate } from './health.ts';
import { HeldTerm } from './held-term.ts';
import type { EndReason } from './reasons.ts';
import { isVoluntary } from './reasons.ts';
import type { UncleanLeader } from './record.ts';
import type { CandidateStatus } from './status.ts';
import { StatusTeller } from './status.ts';
import { anyOf, bounded, Deferred, onAbort, sleep } from './wait.ts';
import type { Watchdog } from './watchdog.ts';

/** What a fence hook is told. */
export interface TakeoverContext {
  readonly election: string;
  /** Token of the term that is about to begin: newer than anything `predecessor` ever had. */
  readonly token: bigint;
  /** Aborted when the belief of the new term is about to end: stop, the takeover has failed. */
  readonly signal: AbortSignal;
  /** Belief that is left for this hook, in ms; renewals prolong it meanwhile. */
  remaining(): number;
}

/** Makes sure that `predecessor`, whose end nobody confirmed, can do no more harm. */
export type FenceHook = (
  predecessor: UncleanLeader,
  context: TakeoverContext,
) => Promise<void> | void;

export interface CampaignSettings {
  readonly candidate: CandidateInfo;
  readonly onUnclean: readonly FenceHook[];
  readonly takeoverDelayMs: number;
  readonly hookTimeoutMs: number;
  readonly health: HealthOptions | undefined;
  readonly actors: 'self' | 'declared';
  readonly onBelief: ((deadline: Instant | undefined) => unknown) | undefined;
  readonly onStatus: ((status: CandidateStatus) => void) | undefined;
}

/** Until when this candidate lets others go first. Outlives a campaign: it belongs to the handle. */
export interface StandAside {
  untilMs: number;
}

/** Takes part in the contest until it has won, or `stop` aborts. */
type Stand<Guard> = (stop: AbortSignal) => Promise<Seat<Guard> | undefined>;

/** Ends after which a candidate lets others go first. */
const givesWay: ReadonlySet<EndReason> = new Set([
  'resigned',
  'vacated',
  'handed-over',
  'unhealthy',
  'takeover-failed',
  'stalled',
]);

export class Campaign<Guard> {
  readonly #contest: Contest<Guard>;
  readonly #scope: Scope;
  readonly #settings: CampaignSettings;
  readonly #source: DiagnosticSource;
  readonly #health: HealthGate | undefined;
  #stopHealth: AbortController | undefined;
  readonly #status: StatusTeller | undefined;
  readonly #watchdog: Watchdog | undefined;
  readonly #aside: StandAside;
  /** The term that has not ended yet. */
  #term: HeldTerm<Guard> | undefined;
  #isLeaving = false;
  readonly #left = new Deferred<void>();

  constructor(
    contest: Contest<Guard>,
    scope: Scope,
    settings: CampaignSettings,
    watchdog: Watchdog | undefined,
    aside: StandAside,
  ) {
    this.#watchdog = watchdog;
    this.#aside = aside;
    this.#contest = contest;
    this.#scope = scope;
    this.#settings = settings;
    this.#source = { election: scope.election, candidate: settings.candidate.id };
    if (settings.onStatus !== undefined) {
      this.#status = new StatusTeller(settings.candidate.id, settings.onStatus, (error) =>
        scope.onTrouble('onStatus', error),
      );
    }
    if (settings.health !== undefined) {
      this.#health = new HealthGate(settings.health, scope, this.#source);
      this.#stopHealth = new AbortController();
      void this.#health.run(this.#stopHealth.signal);
    }
  }

  /** Ends the health checks; terms end by themselves. */
  close(): void {
    this.#stopHealth?.abort();
  }

  /**
   * The handle is being closed. Resolves when a seat that is held, or that is still won meanwhile,
   * was given back or left to run out. Without a seat it stays pending: then the campaign itself
   * ends soon.
   */
  leave(): Promise<void> {
    this.#isLeaving = true;
    if (this.#term !== undefined) void this.#term.left.then(() => this.#left.resolve());
    return this.#left.promise;
  }

  /**
   * Waits until this candidate leads.
   * @param once true: undefined when the seat is not to be had now
   * @throws `signal.reason` when aborted (a seat that was won meanwhile is given back first),
   * ElectionEndedError, and what else waiting cannot cure
   */
  next(once: false, signal: AbortSignal): Promise<HeldTerm<Guard>>;
  next(once: boolean, signal: AbortSignal): Promise<HeldTerm<Guard> | undefined>;
  next(once: boolean, signal: AbortSignal): Promise<HeldTerm<Guard> | undefined> {
    // Each async function on the way costs half a KiB for as long as a candidate waits.
    if (this.#status === undefined) return this.#next(once, signal);
    return this.#nextTold(this.#status, once, signal);
  }

  async #nextTold(
    status: StatusTeller,
    once: boolean,
    signal: AbortSignal,
  ): Promise<HeldTerm<Guard> | undefined> {
    try {
      const term = await this.#next(once, signal);
      if (term === undefined) status.isOut();
      return term;
    } catch (error) {
      // Who was told to stop has nothing to be told.
      status.isOut(signal.aborted ? undefined : error);
      throw error;
    }
  }

  async #next(once: boolean, signal: AbortSignal): Promise<HeldTerm<Guard> | undefined> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#health !== undefined) {
        if (!once) await this.#health.until(true, signal);
        else if (!(await this.#health.first(signal))) return undefined;
      }
      const asideMs = this.#aside.untilMs - this.#scope.clock.monotonicMs();
      if (asideMs > 0) await sleep(this.#scope.clock, asideMs, signal);
      publish('incumbent:waiting', this.#source, {});
      const self = await this.#contest.describe({ pid: process.pid });
      const status = this.#status;
      const stand: Stand<Guard> = (stop) =>
        this.#contest.campaign(
          (unfenced) => this.#stateAtWin(unfenced, self),
          once,
          stop,
          status === undefined ? undefined : (standing) => status.follows(standing),
        );
      const seat =
        this.#health === undefined
          ? await stand(signal)
          : await this.#standWhileHealthy(this.#health, stand, signal);
      if (seat === undefined || seat === 'unhealthy') {
        if (once) return undefined;
        continue;
      }
      const term = await this.#begin(seat, signal);
      if (term !== undefined) return term;
      signal.throwIfAborted();
      if (once) return undefined;
    }
  }

  async #standWhileHealthy(
    health: HealthGate,
    stand: Stand<Guard>,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | 'unhealthy' | undefined> {
    const sick = new AbortController();
    const [stop, forget] = anyOf(signal, sick.signal);
    const done = new AbortController();
    health.until(false, done.signal).then(
      () => sick.abort(),
      () => {},
    );
    try {
      return await stand(stop);
    } catch (error) {
      // Withdrawn while the contest still left the queue: that is what the caller is told.
      signal.throwIfAborted();
      if (sick.signal.aborted) return 'unhealthy';
      throw error;
    } finally {
      forget();
      done.abort();
    }
  }

  #stateAtWin(unfenced: readonly UncleanLeader[], self: Actor | undefined): SeatState {
    const { candidate, actors } = this.#settings;
    const announced = !this.#mustFence(unfenced);
    return {
      announced,
      // While a hook runs, others than this process may act for the term: nothing can be proved.
      actors: announced && actors === 'self' && self !== undefined ? [self] : null,
      addresses: candidate.addresses,
      metadata: candidate.metadata,
    };
  }

  #mustFence(unfenced: readonly UncleanLeader[]): boolean {
    const { onUnclean, takeoverDelayMs } = this.#settings;
    return unfenced.length > 0 && (onUnclean.length > 0 || takeoverDelayMs > 0);
  }

  /** From the seat to the announced term; undefined when it ended on the way. */
  async #begin(seat: Seat<Guard>, signal: AbortSignal): Promise<HeldTerm<Guard> | undefined> {
    const { candidate, actors, onBelief } = this.#settings;
    const term = new HeldTerm(seat, this.#contest, {
      scope: this.#scope,
      candidate,
      actors,
      onBelief,
      watchdog: this.#watchdog,
    });
    this.#term = term;
    if (this.#isLeaving) void term.left.then(() => this.#left.resolve());
    const removeListener = onAbort(signal, () => term.stop('withdrawn', signal.reason));
    const stopWatchingHealth = this.#watchHealth(term);
    void term.ended.then(({ reason, error }) => {
      this.#term = undefined;
      // A withdrawal's error is only the reason of the signal that asked for it.
      const isAsked = reason === 'withdrawn' && error === signal.reason;
      const cause = isVoluntary(reason) ? error : (error ?? term.signal.reason);
      this.#status?.isOut(isAsked ? undefined : cause);
      stopWatchingHealth();
      if (givesWay.has(reason)) {
        this.#aside.untilMs = this.#scope.clock.monotonicMs() + this.#contest.standAsideMs;
      }
    });
    try {
      publish('incumbent:won', this.#source, {
        token: term.token,
        unfenced: seat.unfenced.map(({ id }) => id),
      });
      await this.#waitIn(term, seat.waitBeforeAnnounceMs);
      await this.#fence(term, seat.unfenced);
      await term.announce();
      this.#status?.leads();
      return term;
    } catch (error) {
      if (!term.isEnding) {
        publish('incumbent:takeover-failed', this.#source, { token: term.token, error });
        term.stop('takeover-failed', error);
      }
      term.settle();
      await term.ended;
      return undefined;
    } finally {
      removeListener();
    }
  }

  async #fence(term: HeldTerm<Guard>, unfenced: readonly UncleanLeader[]): Promise<void> {
    if (!this.#mustFence(unfenced)) return;
    const { onUnclean, takeoverDelayMs } = this.#settings;
    await this.#waitIn(term, takeoverDelayMs);
    for (const predecessor of unfenced) {
      for (const [index, hook] of onUnclean.entries()) {
        // The seat may have been won, or the delay waited out, by a process that stood still.
        term.requireMargin();
        const what = `fence hook ${index + 1} of ${onUnclean.length} for "${predecessor.id}"`;
        const context = {
          election: this.#scope.election,
          token: term.token,
          remaining: () => Math.max(0, term.marginMs()),
        };
        await this.#runHook(term, what, (hookSignal) =>
          hook(predecessor, { ...context, signal: hookSignal }),
        );
        // A hook may have taken longer than the belief, or have blocked the event loop.
        if (term.marginMs() <= 0) {
          throw new TakeoverFailedError(this.#scope.election, `${what} ended too late`);
        }
      }
    }
  }

  /** One hook within its bound. A hook that goes on after it was aborted is unsettled work. */
  async #runHook(
    term: HeldTerm<Guard>,
    what: string,
    hook: (signal: AbortSignal) => Promise<void> | void,
  ): Promise<void> {
    let settle = () => {};
    term.holdSettling(
      new Promise<void>((resolve) => {
        settle = resolve;
      }),
    );
    try {
      await bounded(
        this.#scope.clock,
        what,
        this.#settings.hookTimeoutMs,
        term.signal,
        async (hookSignal) => {
          try {
            await hook(hookSignal);
          } finally {
            settle();
          }
        },
      );
    } catch (error) {
      if (term.signal.aborted) throw error;
      throw new TakeoverFailedError(this.#scope.election, `${what} failed`, { cause: error });
    }
  }

  async #waitIn(term: HeldTerm<Guard>, ms: number): Promise<void> {
    if (ms > 0) await sleep(this.#scope.clock, ms, term.signal);
  }

  #watchHealth(term: HeldTerm<Guard>): () => void {
    if (this.#health === undefined) return () => {};
    const stop = new AbortController();
    this.#health.until(false, stop.signal).then(
      () => term.stop('unhealthy'),
      () => {},
    );
    return () => stop.abort();
  }
}
