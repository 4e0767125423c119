import { StoreUnavailableError, TakeoverFailedError } from '../base/errors.ts';
import { withJson } from '../base/json.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import { sameReason } from '../base/not-elected.ts';
import type { EndReason } from '../base/reasons.ts';
import { isVoluntary } from '../base/reasons.ts';
import { anyOf, bounded, onAbort, sleep } from '../base/wait.ts';
import type { Actor, UncleanLeader } from '../record/record.ts';
import type { CampaignSettings } from './campaign-settings.ts';
import type {
  Candidacy,
  Contest,
  QueuePosition,
  Scope,
  Seat,
  SeatState,
  SeatWrite,
  WaitMode,
} from './contest.ts';
import type { DiagnosticSource } from './diagnostics.ts';
import { publish } from './diagnostics.ts';
import { HealthGate } from './health.ts';
import { HeldTerm } from './held-term.ts';
import { SeatTeller } from './seat-identity.ts';
import { StatusTeller } from './status.ts';
import type { Watchdog } from './watchdog.ts';

/**
 * The time until which this candidate lets others go first. It belongs to the handle, and so
 * outlives a campaign.
 */
export interface StandAside {
  untilMs: number;
  /** Takeovers in a row that could not fence a leader. The more, the longer it lets others go first. */
  failedTakeovers: number;
}

/** Of the time for which it lets others go first. */
const mostDoublings = 10;

/** Ends after which a candidate lets others go first. */
const givesWay: ReadonlySet<EndReason> = new Set([
  'resigned',
  'vacated',
  'handed-over',
  'unhealthy',
  'not-ready',
  'takeover-failed',
  'stalled',
]);

export class Campaign<Guard> implements Candidacy {
  readonly #contest: Contest<Guard>;
  readonly #scope: Scope;
  readonly #settings: CampaignSettings;
  readonly #source: DiagnosticSource;
  readonly #health: HealthGate | undefined;
  #stopHealth: AbortController | undefined;
  readonly #status: StatusTeller | undefined;
  readonly #seats: SeatTeller | undefined;
  readonly #watchdog: Watchdog | undefined;
  readonly #aside: StandAside;
  #why: NotElectedReason | undefined;
  /** The term that has not ended yet. */
  #term: HeldTerm<Guard> | undefined;

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
    const { id, incarnation } = settings.candidate;
    const { election, seats } = scope;
    this.#source = { election, candidate: id, incarnation, ...(seats !== undefined && { seats }) };
    if (settings.onStatus !== undefined) {
      this.#status = new StatusTeller(settings.candidate.id, settings.onStatus, (error) =>
        scope.onTrouble('onStatus', error),
      );
    }
    const { onSeat } = settings;
    if (onSeat !== undefined) {
      this.#seats = new SeatTeller(settings.candidate, onSeat, (error) =>
        scope.onTrouble('onSeat', error),
      );
    }
    if (settings.health !== undefined) {
      this.#health = new HealthGate(settings.health, scope, this.#source);
      this.#stopHealth = new AbortController();
      void this.#health.run(this.#stopHealth.signal);
    }
  }

  /** Ends the health checks. Terms end by themselves. */
  close(): void {
    this.#seats?.onOver();
    this.#stopHealth?.abort();
    publish('incumbent:campaign-ended', this.#source, {});
  }

  /**
   * Called when the handle closes, after the signal of its campaign has aborted. Resolves when a
   * seat that is held was given back or left to run out. Without a seat it stays pending, because
   * the campaign itself ends soon. A seat that it still wins before that is given back, and no work
   * or fence hook begins on it.
   */
  leave(): Promise<void> {
    return this.#term?.left ?? new Promise(() => {});
  }

  /** The last known reason why this candidate is not elected. */
  get whyNot(): NotElectedReason {
    return (
      this.#why ?? {
        kind: 'unreachable',
        cause: new StoreUnavailableError('it has not answered yet'),
      }
    );
  }

  /**
   * Waits until this candidate leads.
   * @returns undefined when `waitMode` does not let it wait longer; `whyNot` says why
   * @throws `signal.reason` when aborted, after a seat that was won meanwhile is given back
   * @throws ElectionEndedError, and other errors that waiting cannot cure
   */
  next(waitMode: 'wait', signal: AbortSignal): Promise<HeldTerm<Guard>>;
  next(waitMode: WaitMode, signal: AbortSignal): Promise<HeldTerm<Guard> | undefined>;
  next(waitMode: WaitMode, signal: AbortSignal): Promise<HeldTerm<Guard> | undefined> {
    // Each async function on the way costs half a KiB for as long as a candidate waits.
    if (this.#status === undefined) return this.#next(waitMode, signal);
    return this.#nextTold(this.#status, waitMode, signal);
  }

  async #nextTold(
    status: StatusTeller,
    waitMode: WaitMode,
    signal: AbortSignal,
  ): Promise<HeldTerm<Guard> | undefined> {
    try {
      const term = await this.#next(waitMode, signal);
      if (term === undefined) status.isOut();
      return term;
    } catch (error) {
      // A candidate that was told to stop needs no error.
      status.isOut(signal.aborted ? undefined : error);
      throw error;
    }
  }

  async #next(waitMode: WaitMode, signal: AbortSignal): Promise<HeldTerm<Guard> | undefined> {
    for (;;) {
      signal.throwIfAborted();
      // A candidate that waits again is told the reason again.
      this.#why = undefined;
      if (this.#health !== undefined && !(await this.#isHealthy(this.#health, signal))) {
        if (waitMode !== 'wait') return undefined;
        await this.#health.until(true, signal);
      }
      const { clock } = this.#scope;
      const asideMs = this.#aside.untilMs - clock.monotonicMs();
      if (asideMs > 0) {
        this.onWaiting({ kind: 'aside', untilUnixMs: clock.wallMs() + asideMs });
        await sleep(clock, asideMs, signal);
      }
      publish('incumbent:waiting', this.#source, {});
      const seat =
        this.#health === undefined
          ? await this.#contest.campaign(this, waitMode, signal)
          : await this.#standWhileHealthy(this.#health, waitMode, signal);
      const term = seat === undefined ? undefined : await this.#begin(seat, signal);
      if (term !== undefined) return term;
      if (seat !== undefined) signal.throwIfAborted();
      if (waitMode !== 'wait') return undefined;
    }
  }

  /** The result of the first check, or of the last one if there was one before. */
  async #isHealthy(health: HealthGate, signal: AbortSignal): Promise<boolean> {
    // Listeners hear of it only after the check. A campaign that gives up meanwhile reports it.
    this.#why = { kind: 'unhealthy', error: health.error };
    const isHealthy = await health.first(signal);
    this.#why = undefined;
    if (!isHealthy) this.onWaiting({ kind: 'unhealthy', error: health.error });
    return isHealthy;
  }

  /** @returns undefined also when the health check has failed meanwhile */
  async #standWhileHealthy(
    health: HealthGate,
    waitMode: WaitMode,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | undefined> {
    const sick = new AbortController();
    const [stop, forget] = anyOf(signal, sick.signal);
    const done = new AbortController();
    health.until(false, done.signal).then(
      () => sick.abort(),
      () => {},
    );
    try {
      return await this.#contest.campaign(this, waitMode, stop);
    } catch (error) {
      // The caller is told of a withdrawal that came while the contest left the queue.
      signal.throwIfAborted();
      if (!sick.signal.aborted) throw error;
      this.onWaiting({ kind: 'unhealthy', error: health.error });
      return undefined;
    } finally {
      forget();
      done.abort();
    }
  }

  // --- asked and told by the contest ---

  stateAtWin(unfenced: readonly UncleanLeader[], self?: Actor): SeatState {
    const { candidate, actors, readiness } = this.#settings;
    const announced = !this.#mustFence(unfenced);
    return {
      announced,
      // Processes that a hook has started may act for the term, so no death can be proved.
      actors: announced && actors === 'self' && self !== undefined ? [self] : null,
      addresses: candidate.addresses,
      metadata: candidate.metadata,
      ...(readiness !== undefined && { ready: false }),
    };
  }

  onQueuePosition(position: QueuePosition, why: NotElectedReason | undefined): void {
    const isNews = this.#learn(why);
    this.#status?.follows(position, isNews ? why : undefined);
  }

  onWaiting(why: NotElectedReason): void {
    if (this.#learn(why)) this.#status?.waits(why);
  }

  onWrite(write: SeatWrite): void {
    this.#seats?.onWrite(write);
  }

  /** @returns true when the reason is a new one */
  #learn(why: NotElectedReason | undefined): boolean {
    const isNews = why !== undefined && !sameReason(this.#why, why);
    this.#why = why;
    if (isNews) publish('incumbent:waiting-for', this.#source, { why });
    return isNews;
  }

  #mustFence(unfenced: readonly UncleanLeader[]): boolean {
    const { onUnclean, takeoverDelayMs } = this.#settings;
    return unfenced.length > 0 && (onUnclean.length > 0 || takeoverDelayMs > 0);
  }

  /** Leads from the seat to the announced term. Undefined when the term ended on the way. */
  async #begin(seat: Seat<Guard>, signal: AbortSignal): Promise<HeldTerm<Guard> | undefined> {
    const { candidate, actors, readiness, onBelief } = this.#settings;
    const term = new HeldTerm(seat, this.#contest, {
      scope: this.#scope,
      candidate,
      actors,
      readiness,
      onBelief,
      watchdog: this.#watchdog,
    });
    this.#term = term;
    const removeListener = onAbort(signal, () => term.stop('withdrawn', signal.reason));
    const stopWatchingHealth = this.#watchHealth(term);
    void term.ended.then(({ reason, error }) => {
      this.#term = undefined;
      this.#seats?.onOver();
      // The error of a withdrawal is only the reason of the signal that asked for it.
      const isAsked = reason === 'withdrawn' && error === signal.reason;
      const cause = isVoluntary(reason) ? error : (error ?? term.signal.reason);
      this.#status?.isOut(isAsked ? undefined : cause);
      stopWatchingHealth();
      if (givesWay.has(reason)) {
        this.#aside.untilMs = this.#scope.clock.monotonicMs() + this.#asideMs();
      }
    });
    try {
      publish(
        'incumbent:won',
        { ...this.#source, seat: term.seat },
        {
          token: term.token,
          unfenced: seat.unfenced.map(({ id }) => id),
          predecessor: term.predecessor,
        },
      );
      if (seat.waitBeforeAnnounceMs > 0) this.#tellTakeover(seat.waitBeforeAnnounceMs);
      await this.#waitIn(term, seat.waitBeforeAnnounceMs);
      await this.#fence(term, seat.unfenced);
      await term.announce();
      this.#aside.failedTakeovers = 0;
      this.#status?.leads();
      return term;
    } catch (error) {
      if (!term.isEnding) {
        this.#aside.failedTakeovers += 1;
        publish('incumbent:takeover-failed', term, { token: term.token, error });
        term.stop('takeover-failed', error);
      }
      if (!signal.aborted) this.#why = { kind: 'lost', cause: error };
      term.settle();
      await term.ended;
      return undefined;
    } finally {
      removeListener();
    }
  }

  /** Doubles with each takeover in a row that has failed, up to a lease. */
  #asideMs(): number {
    const { standAsideMs } = this.#contest;
    const doublings = Math.min(Math.max(0, this.#aside.failedTakeovers - 1), mostDoublings);
    const longestMs = Math.max(standAsideMs, this.#scope.timing.leaseMs);
    return Math.min(standAsideMs * 2 ** doublings, longestMs);
  }

  #tellTakeover(waitMs: number): void {
    const sinceUnixMs = this.#scope.clock.wallMs();
    const untilUnixMs = sinceUnixMs + waitMs;
    this.onWaiting({ kind: 'settling', after: 'win', sinceUnixMs, untilUnixMs });
  }

  async #fence(term: HeldTerm<Guard>, unfenced: readonly UncleanLeader[]): Promise<void> {
    if (!this.#mustFence(unfenced)) return;
    const { onUnclean, takeoverDelayMs } = this.#settings;
    await this.#waitIn(term, takeoverDelayMs);
    for (const predecessor of unfenced) {
      for (const [index, hook] of onUnclean.entries()) {
        // This process may have stood still when it won the seat, or waited for the delay.
        term.requireMargin();
        const which = onUnclean.length === 1 ? '' : ` ${index + 1} of ${onUnclean.length}`;
        const what = `fence hook${which} for "${predecessor.id}"`;
        const context = {
          election: this.#scope.election,
          token: term.token,
          seat: term.seat,
          remaining: () => Math.max(0, term.marginMs()),
        };
        try {
          await this.#runHook(term, what, (hookSignal) =>
            hook(withJson(predecessor), withJson({ ...context, signal: hookSignal })),
          );
        } catch (error) {
          term.couldNotFence(predecessor, error);
          throw error;
        }
        // A hook may have taken longer than the belief, or have blocked the event loop.
        if (term.marginMs() <= 0) {
          throw new TakeoverFailedError(this.#scope.election, `${what} ended too late`);
        }
      }
    }
  }

  /** Runs one hook within its bound. A hook that goes on after it was aborted is unsettled work. */
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
      if (term.signal.aborted || error instanceof TakeoverFailedError) throw error;
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
