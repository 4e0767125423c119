/// <reference lib="esnext.disposable" preserve="true" />
import { setMaxListeners } from 'node:events';
import type { Belief } from '../base/belief.ts';
import type { CandidateInfo } from '../base/candidate.ts';
import { checkAddresses, checkMetadata, describeValue } from '../base/candidate.ts';
import { checkNames } from '../base/check-names.ts';
import type { Clock, Instant, Timer } from '../base/clock.ts';
import { maxTimerMs } from '../base/clock.ts';
import type { Deadline } from '../base/deadline.ts';
import {
  InvalidOptionError,
  LeftBehindError,
  MisuseError,
  NotLeadingError,
  OperationTimeoutError,
  TermEndedError,
} from '../base/errors.ts';
import { toJson, withJson } from '../base/json.ts';
import type { EndReason } from '../base/reasons.ts';
import { describeEnd, takesSeatAway } from '../base/reasons.ts';
import { bounded, Deferred, onAbort, Wakeup } from '../base/wait.ts';
import type { LeaderRequest, UncleanLeader } from '../record/record.ts';
import type {
  ActorProcess,
  Contest,
  Predecessor,
  Scope,
  Seat,
  SeatEvents,
  SeatState,
} from './contest.ts';
import { publish } from './diagnostics.ts';
import { checkSignalOption } from './options.ts';
import type { Proclamation, Term, TermOutcome, TermState } from './term.ts';
import type { TermAt, TermEffect, TermEnd, TermEvent } from './term-machine.ts';
import { endOf, firstTermAt, hasSettled, isKept, nextTermAt, shownAt } from './term-machine.ts';
import type { Watchdog } from './watchdog.ts';

export interface HeldTermOptions {
  readonly scope: Scope;
  readonly candidate: CandidateInfo;
  readonly actors: 'self' | 'declared';
  /** Told the new end of belief at every extension, and undefined when belief is over. */
  readonly onBelief?: ((deadline: Deadline | undefined) => unknown) | undefined;
  readonly watchdog?: Watchdog | undefined;
}

const proclamationNames: Readonly<Record<keyof Proclamation, true>> = {
  addresses: true,
  metadata: true,
};

const actorNames: Readonly<Record<keyof ActorProcess, true>> = {
  pid: true,
  group: true,
  session: true,
};

/** @throws InvalidOptionError */
function checkActors(processes: readonly ActorProcess[] | null): void {
  if (processes !== null && !Array.isArray(processes)) {
    throw new InvalidOptionError(
      `declareActors takes a list of processes, or null, not ${describeValue(processes)}`,
    );
  }
  for (const each of processes ?? []) {
    checkNames('`declareActors`', each, actorNames, '[{ pid: child.pid }]');
  }
}

/** How long a seat that is handed over stays closed to everybody but the one named, if it is woken. */
const longestReservationMs = 15_000;

/** How long the last attempts to give a seat back may take, in operation timeouts. */
const releaseTimeouts = 3;

/**
 * A term from the moment its seat is won: keeps it confirmed, stops it in order, gives it back. What it is, and what
 * is to be done, says the machine in term-machine.ts; this tells the machine what happens, and does it.
 */
export class HeldTerm<Guard> implements Term<Guard>, SeatEvents {
  readonly election: string;
  readonly candidate: string;
  readonly token: bigint;
  readonly guard: Guard;
  readonly predecessor: Predecessor | undefined;
  readonly #scope: Scope;
  readonly #clock: Clock;
  readonly #seat: Seat<Guard>;
  readonly #contest: Contest<Guard>;
  readonly #options: HeldTermOptions;
  readonly #belief: Belief;
  readonly #work = new AbortController();
  /** The confirmation that is under way. */
  #operation: AbortController | undefined;
  readonly #wakeup = new Wakeup();
  readonly #ended = new Deferred<TermOutcome>();
  readonly #left = new Deferred<void>();
  readonly #keeping: Promise<void>;
  #at: TermAt = firstTermAt;
  /** What the machine wants to be done, in order. */
  readonly #effects: TermEffect[] = [];
  #isActing = false;
  #sinceUnixMs: number;
  #pendingHook: Promise<void> | undefined;
  #confirmedAt: Instant;
  /** What was lost of the belief, as it was told last. */
  #toldLostMs = 0;
  /** What the record is to show; `#shownRevision` is the revision that it is known to show. */
  #want: SeatState;
  #revision = 0;
  /** The declaration of actors before the next one. Never rejects. */
  #declaring: Promise<unknown> = Promise.resolve();
  #shownRevision = 0;
  #shown = new Deferred<void>();
  #unfenced: readonly UncleanLeader[];
  #stopTimer: Timer | undefined;
  /** Of how long the work is renewed for, and then of the end of belief. */
  #closingTimer: Timer | undefined;
  #reservation: { readonly reservedFor?: string; readonly reserveMs?: number } = {};
  #isWorkOfLead = false;
  #endListener: (() => void) | undefined;
  #heldUntilUnixMs = 0;
  #heldMostMs = 0;
  /** Monotonic: when the belief was over, by whichever clock said so first. */
  #overAtMs = 0;
  #overrunMs = 0;
  /** Why the seat could not be given back. */
  #releaseError: unknown;

  constructor(seat: Seat<Guard>, contest: Contest<Guard>, options: HeldTermOptions) {
    this.#scope = options.scope;
    this.#clock = options.scope.clock;
    this.#seat = seat;
    this.#contest = contest;
    this.#options = options;
    // Whatever the work waits for is given it.
    setMaxListeners(0, this.#work.signal);
    this.election = options.scope.election;
    this.candidate = options.candidate.id;
    this.token = seat.token;
    this.guard = seat.guard;
    this.predecessor = seat.predecessor && withJson(seat.predecessor);
    this.#want = seat.state;
    this.#unfenced = seat.unfenced;
    this.#sinceUnixMs = this.#clock.wallMs();
    this.#confirmedAt = seat.sentAt;
    this.#belief = seat.belief;
    this.#tellBelief();
    this.#armStopTimer();
    this.#keeping = this.#keep();
    seat.attach(this);
  }

  // --- what the work sees ---

  get state(): TermState {
    return this.#belief.remainingMs() <= 0 ? 'ended' : shownAt(this.#at);
  }

  get sinceUnixMs(): number {
    return this.#sinceUnixMs;
  }

  get signal(): AbortSignal {
    return this.#work.signal;
  }

  get ended(): Promise<TermOutcome> {
    return this.#ended.promise;
  }

  isLeading(): boolean {
    return this.#at.announced && this.#belief.remainingMs() > 0;
  }

  assertLeading(minMs = 0): void {
    const { beliefMs } = this.#scope.timing;
    if (!(typeof minMs === 'number' && minMs >= 0 && minMs < beliefMs)) {
      throw new InvalidOptionError(
        `assertLeading takes a number of ms, 0 or more and less than the belief of ${beliefMs} ms, ` +
          `not ${describeValue(minMs)}`,
      );
    }
    const remainingMs = this.#at.announced ? this.#belief.remainingMs() : 0;
    if (!(remainingMs > 0 && remainingMs > minMs)) {
      throw new NotLeadingError(this.election, this.token, minMs, remainingMs);
    }
  }

  remaining(): number {
    return this.#at.announced ? Math.max(0, this.#belief.remainingMs()) : 0;
  }

  async proclaim(
    proclamation: Proclamation,
    options: { signal?: AbortSignal } = {},
  ): Promise<void> {
    checkNames('`proclaim`', proclamation, proclamationNames, '{ addresses: ["10.0.0.7:80"] }');
    checkSignalOption('proclaim', options);
    const addresses = checkAddresses(proclamation.addresses ?? this.#want.addresses);
    const metadata = checkMetadata(proclamation.metadata ?? this.#want.metadata);
    await this.#show({ ...this.#want, addresses, metadata }, options.signal);
  }

  async declareActors(
    processes: readonly ActorProcess[] | null,
    options: { signal?: AbortSignal } = {},
  ): Promise<void> {
    checkSignalOption('declareActors', options);
    if (this.#options.actors !== 'declared') {
      throw new MisuseError('declareActors needs the option actors: "declared"');
    }
    checkActors(processes);
    // In the order of the calls: a slow description must not replace a later declaration.
    const described = this.#declaring.then(() => this.#describeAll(processes));
    this.#declaring = described.catch(() => {});
    const actors = await described;
    // Nothing to write where the store cannot prove a death anyway, if the record is known to say so.
    const isShown = this.#shownRevision === this.#revision;
    if (actors === null && this.#want.actors === null && isShown) {
      this.#work.signal.throwIfAborted();
      return;
    }
    await this.#show({ ...this.#want, actors }, options.signal);
  }

  /** @returns null when the list is not known to be complete, and so proves nothing */
  async #describeAll(processes: readonly ActorProcess[] | null): Promise<SeatState['actors']> {
    if (processes === null) return null;
    // Whoever holds the belief acts for the term, whatever else does.
    const all = processes.some(({ pid, group }) => pid === process.pid && group === undefined)
      ? processes
      : [{ pid: process.pid }, ...processes];
    const described = await Promise.all(all.map((each) => this.#contest.describe(each)));
    const known = described.filter((actor) => actor !== undefined);
    return known.length === described.length ? known : null;
  }

  resign(): void {
    this.stop('resigned');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isWorkOfLead) {
      throw new MisuseError(
        'lead() ends the term when the work returns: disposing it from within the work would say ' +
          'that the work is over while it runs',
      );
    }
    this.stop('resigned');
    this.settle();
    await this.#ended.promise;
  }

  toJSON(): Readonly<Record<string, unknown>> {
    const { election, candidate, token, state, sinceUnixMs, predecessor } = this;
    return toJson({ election, candidate, token, state, sinceUnixMs, predecessor });
  }

  // --- what the campaign does with it ---

  /** This term ends with the work that `lead` was given, and not by being disposed. */
  bindToWork(): void {
    this.#isWorkOfLead = true;
  }

  /** Calls `listener` right before `ended` resolves. */
  onceEnded(listener: () => void): void {
    this.#endListener = listener;
  }

  /**
   * The work is done: nobody may take the seat before then, by their wall clocks, nor for longer than
   * `mostMs`, however the clocks are set; also if this process dies. The record is asked to say so.
   */
  holdUntil(unixMs: number, mostMs: number): void {
    this.#heldUntilUnixMs = unixMs;
    this.#heldMostMs = mostMs;
    if (this.isEnding) return;
    this.#want = { ...this.#want, held: { ms: mostMs, untilUnixMs: unixMs } };
    this.#revision += 1;
    this.#wakeup.raise();
  }

  /** True once the term is to end, whoever decided it. */
  get isEnding(): boolean {
    return endOf(this.#at) !== undefined;
  }

  /** Resolves when the seat was given back or left to run out, even if the work goes on. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  /** Belief left before the work must be told to stop: the bound of hooks. */
  marginMs(): number {
    return this.#belief.remainingMs() - this.#scope.timing.stopMarginMs;
  }

  /** @throws the term's end, when belief − G has come and no timer has said so yet */
  requireMargin(): void {
    this.checkMargin();
    this.#work.signal.throwIfAborted();
  }

  /**
   * The predecessor is fenced: makes the record say that this term leads. Resolves when that is
   * confirmed and the belief still holds.
   * @throws the term's end
   */
  async announce(): Promise<void> {
    if (!this.#want.announced) {
      // From here on the record says that this process alone acts for the term, if it does.
      let { actors } = this.#want;
      if (this.#options.actors === 'self') {
        const self = await this.#contest.describe({ pid: process.pid });
        actors = self === undefined ? null : [self];
      }
      await this.#show({ ...this.#want, announced: true, actors });
    }
    if (!this.isEnding && this.marginMs() <= 0) this.#on({ on: 'lost', reason: 'stalled' });
    this.#work.signal.throwIfAborted();
    this.#unfenced = [];
    this.#on({ on: 'announced' });
    this.#sinceUnixMs = this.#clock.wallMs();
    publish('incumbent:leading', this, { token: this.token });
  }

  /** The work of this term has settled, or there never was any. */
  settle(): void {
    const pending = this.#pendingHook;
    if (pending !== undefined) {
      void pending.then(() => {
        if (this.#pendingHook === pending) this.#pendingHook = undefined;
        this.settle();
      });
      return;
    }
    if (hasSettled(this.#at)) return;
    const nowMs = this.#clock.monotonicMs();
    this.#overrunMs = Math.max(
      0,
      this.#belief.deadline === undefined ? nowMs - this.#overAtMs : -this.#belief.remainingMs(),
    );
    this.#options.watchdog?.update(undefined);
    this.#on({ on: 'settled' });
  }

  /** Work that must be over before the term can count as settled: a fence hook. Never rejects. */
  holdSettling(hook: Promise<void>): void {
    this.#pendingHook = hook;
  }

  /**
   * Asks for an end. The first reason stays.
   * @param reservation who alone may take the seat for a while after it was given back
   */
  stop(
    reason: EndReason,
    error?: unknown,
    reservation: { readonly reservedFor?: string; readonly reserveMs?: number } = {},
  ): void {
    if (this.isEnding) return;
    this.#reservation = reservation;
    this.#on({ on: 'asked-to-stop', end: { reason, error } });
  }

  // --- keeping it ---

  async #keep(): Promise<void> {
    const { timing } = this.#scope;
    let dueMs = this.#confirmedAt.monotonicMs + timing.renewEveryMs;
    try {
      while (isKept(this.#at)) {
        await this.#wakeup.wait(this.#clock, dueMs - this.#clock.monotonicMs());
        this.checkMargin();
        if (!isKept(this.#at)) break;
        // A wall clock that was set, or a host that slept, has moved the margin.
        this.#armStopTimer();
        const asked = this.#revision;
        if (!(await this.#confirm(asked)) || this.#shownRevision < asked) {
          // Nothing was learnt, or the seat is ours and the record cannot be made to say more.
          dueMs = this.#clock.monotonicMs() + timing.retryBackoffMs;
        } else if (this.#revision > this.#shownRevision) {
          dueMs = this.#clock.monotonicMs();
        } else {
          // From its sending: a confirmation may be shared, and then it is older than our asking.
          dueMs = this.#confirmedAt.monotonicMs + timing.renewEveryMs;
        }
      }
    } catch (error) {
      // A defect of ours: the belief runs out.
      this.#scope.onTrouble('keeping a term', error);
    }
  }

  /** One confirmation. @returns true when it arrived */
  async #confirm(revision: number): Promise<boolean> {
    const sentMs = this.#clock.monotonicMs();
    let error: unknown;
    const operation = new AbortController();
    this.#operation = operation;
    try {
      const confirmation = await this.#seat.confirm(this.#want, operation.signal);
      if (confirmation.outcome === 'lost') {
        const { reason, endsBelief } = confirmation;
        this.#on({ on: 'lost', reason, ...(endsBelief === undefined ? {} : { endsBelief }) });
        return false;
      }
      if (confirmation.outcome === 'confirmed') {
        if (isKept(this.#at) && !this.#belief.extend(confirmation.sentAt)) {
          this.#on({ on: 'lost', reason: 'stalled' });
        }
        if (!isKept(this.#at)) return false;
        this.#confirmedAt = confirmation.sentAt;
        this.#scope.onAnswer?.(true);
        this.#on({ on: 'confirmed' });
        this.#tellBelief();
        if (confirmation.state === this.#want) this.#hasShown(revision);
        publish('incumbent:confirmed', this, {
          token: this.token,
          elapsedMs: this.#clock.monotonicMs() - sentMs,
          remainingMs: this.#belief.remainingMs(),
        });
        return true;
      }
    } catch (thrown) {
      if (operation.signal.aborted) return false;
      error = thrown;
    } finally {
      this.#operation = undefined;
    }
    if (error !== undefined) this.#scope.onAnswer?.(false);
    this.#on({ on: 'unconfirmed' });
    publish('incumbent:unconfirmed', this, {
      token: this.token,
      remainingMs: this.#belief.remainingMs(),
      error,
    });
    this.checkMargin();
    return false;
  }

  /** Wants the record to show `state` and waits until it does. */
  async #show(state: SeatState, signal?: AbortSignal): Promise<void> {
    this.#work.signal.throwIfAborted();
    signal?.throwIfAborted();
    this.#want = state;
    this.#revision += 1;
    const revision = this.#revision;
    this.#wakeup.raise();
    const stop = new Deferred<void>();
    const removers = [
      onAbort(signal, () => stop.resolve()),
      onAbort(this.#work.signal, () => stop.resolve()),
    ];
    try {
      while (this.#shownRevision < revision) {
        await Promise.race([this.#shown.promise, stop.promise]);
        if (this.#shownRevision >= revision) return;
        signal?.throwIfAborted();
        this.#work.signal.throwIfAborted();
      }
    } finally {
      for (const remove of removers) remove();
    }
  }

  #hasShown(revision: number): void {
    if (revision <= this.#shownRevision) return;
    this.#shownRevision = revision;
    this.#shown.resolve();
    this.#shown = new Deferred();
  }

  // --- what the seat tells ---

  onRequest(request: LeaderRequest): void {
    if (request.kind === 'vacate') {
      this.stop('vacated');
      return;
    }
    // Where nobody is woken, it is for the one named to look once while the seat waits for it.
    const reserveMs = Math.max(
      Math.min(this.#scope.timing.leaseMs, longestReservationMs),
      this.#contest.standAsideMs,
    );
    this.stop('handed-over', undefined, { reservedFor: request.to, reserveMs });
  }

  onDrained(): void {
    this.stop('vacated');
  }

  onElectionEnded(): void {
    this.stop('election-ended');
  }

  onHint(): void {
    this.#wakeup.raise();
  }

  onUncertain(): void {
    this.#on({ on: 'doubted' });
  }

  onDisconnected(): void {
    this.stop('disconnected');
  }

  onLost(reason: EndReason): void {
    this.#on({ on: 'lost', reason });
  }

  // --- losing it, ending it ---

  /** Tells the work to stop when belief − G has come. The timer may be late, so others call it too. */
  checkMargin(): void {
    if (!isKept(this.#at)) return;
    if (this.marginMs() <= 0) {
      this.#on({ on: 'margin-over' });
    } else if (this.#belief.deadline?.lostMs !== this.#toldLostMs) {
      // Who begins to watch over it later has not seen what our looks have.
      this.#tellBelief();
    }
  }

  #armStopTimer(): void {
    if (!isKept(this.#at)) return;
    this.#stopTimer?.cancel();
    // Timers count by the monotonic clock; the wall clock may reach its deadline faster, by the
    // ratio of the two rates. Look again before that; never wait less than a millisecond.
    const { clockDrift } = this.#scope.timing;
    const waitMs = (this.marginMs() * (1 - clockDrift)) / (1 + clockDrift);
    const delayMs = Math.min(Math.max(1, waitMs), maxTimerMs);
    this.#stopTimer = this.#clock.setTimer(() => {
      this.checkMargin();
      this.#armStopTimer();
    }, delayMs);
  }

  #on(event: TermEvent): void {
    const { next, effects } = nextTermAt(this.#at, event);
    this.#at = next;
    // At once, whoever tells it, and whatever else is being done: nobody may believe a moment longer.
    if (effects.some((effect) => effect.do === 'end-belief')) this.#endBelief();
    this.#effects.push(...effects);
    // Whoever is told something may tell something: that comes after what is to be done already.
    if (this.#isActing) return;
    this.#isActing = true;
    try {
      for (
        let effect = this.#effects.shift();
        effect !== undefined;
        effect = this.#effects.shift()
      ) {
        this.#tryTo(effect);
      }
    } finally {
      this.#isActing = false;
    }
  }

  /** One that fails, such as a clock that gives no timer, keeps no other from being done. */
  #tryTo(effect: TermEffect): void {
    try {
      this.#act(effect);
    } catch (error) {
      this.#scope.onTrouble(`${effect.do} of a term`, error);
    }
  }

  #act(effect: TermEffect): void {
    switch (effect.do) {
      case 'show':
        publish('incumbent:state', this, { token: this.token, state: effect.state });
        return;
      case 'stop-work':
        this.#stopWork(effect.end);
        return;
      case 'wait-for-work':
        this.#after(this.#scope.timing.stopTimeoutMs, () => this.#on({ on: 'waited-enough' }));
        return;
      case 'stop-keeping':
        // A renewal after this would only make the others wait longer.
        this.#stopTimer?.cancel();
        this.#operation?.abort();
        this.#wakeup.raise();
        this.#keeping.finally(() => this.#on({ on: 'through' })).catch(() => {});
        this.#waitOutBelief();
        return;
      case 'end-belief':
        // Done already.
        this.#closingTimer?.cancel();
        return;
      case 'release':
        void this.#release(effect.reason).then((released) => this.#hasLeft(released));
        return;
      case 'tell-overrun':
        publish('incumbent:overrun', this, { token: this.token, reason: effect.reason });
        return;
      case 'abandon':
        void this.#bounded('leaving the seat', (signal) => this.#seat.abandon(signal)).then(() =>
          this.#hasLeft(false),
        );
        return;
      case 'finish':
        this.#finish(effect);
    }
  }

  #stopWork({ reason, error }: TermEnd): void {
    this.#work.abort(
      new TermEndedError(
        reason,
        this.token,
        `term ${this.token} of election "${this.election}" ended: ${describeEnd(reason)}`,
        error === undefined ? {} : { cause: error },
      ),
    );
  }

  /** Work that has not settled when it is over has no leader behind it any more. */
  #waitOutBelief(): void {
    this.#closingTimer?.cancel();
    if (this.#at.at !== 'lapsing' || this.#at.settled || this.#at.over) return;
    const leftMs = this.#belief.remainingMs();
    if (leftMs <= 0) this.#on({ on: 'belief-over' });
    else this.#after(leftMs, () => this.#waitOutBelief());
  }

  #after(ms: number, act: () => void): void {
    this.#closingTimer?.cancel();
    this.#closingTimer = this.#clock.setTimer(act, Math.min(Math.max(1, ms), maxTimerMs));
  }

  #hasLeft(released: boolean): void {
    this.#left.resolve();
    this.#on({ on: 'left', released });
  }

  #finish({ end, released, overran }: Extract<TermEffect, { do: 'finish' }>): void {
    this.#closingTimer?.cancel();
    const { reason } = end;
    const error = overran ? end.error : (end.error ?? this.#releaseError);
    const settled = !overran;
    publish('incumbent:ended', this, { token: this.token, reason, released, settled, error });
    try {
      this.#endListener?.();
    } finally {
      this.#ended.resolve({
        reason,
        released,
        overrunMs: this.#overrunMs,
        ...(error === undefined ? {} : { error }),
      });
    }
  }

  async #release(reason: EndReason): Promise<boolean> {
    if (takesSeatAway(reason)) {
      await this.#bounded('leaving the seat', (signal) => this.#seat.abandon(signal));
      return false;
    }
    const toUnixMs = this.#clock.wallMs();
    const heldMs = Math.min(this.#heldMostMs, this.#heldUntilUnixMs - toUnixMs);
    const released = await this.#bounded('releasing', (signal) =>
      this.#seat.release(
        {
          reason,
          hasLed: this.#at.announced,
          fromUnixMs: this.#sinceUnixMs,
          toUnixMs,
          unfenced: this.#unfenced,
          // A seat that is held for nobody is not handed to anybody either.
          ...(heldMs > 0 ? { reserveMs: heldMs } : this.#reservation),
        },
        signal,
      ),
    );
    return released === true;
  }

  /** With a fresh signal: the one that asked us to stop must not cut this short. */
  async #bounded<T>(
    what: string,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    const { operationTimeoutMs } = this.#scope.timing;
    const timeoutMs = releaseTimeouts * operationTimeoutMs;
    const stop = new AbortController();
    const timer = this.#clock.setTimer(
      () => stop.abort(new OperationTimeoutError(what, timeoutMs)),
      timeoutMs,
    );
    try {
      // Whoever heeds its signal says what is left behind; who does not is not waited for either.
      const never = new AbortController().signal;
      const mostMs = timeoutMs + operationTimeoutMs;
      return await bounded(this.#clock, what, mostMs, never, () => operation(stop.signal));
    } catch (error) {
      this.#scope.onTrouble(what, error);
      if (error instanceof LeftBehindError) this.#releaseError = error;
      return undefined;
    } finally {
      timer.cancel();
    }
  }

  #endBelief(): void {
    if (this.#belief.deadline === undefined) return;
    this.#overAtMs = this.#clock.monotonicMs() + Math.min(0, this.#belief.remainingMs());
    this.#belief.end();
    this.#tellBelief();
  }

  #tellBelief(): void {
    const { deadline } = this.#belief;
    this.#toldLostMs = deadline?.lostMs ?? 0;
    // The watchdog goes by the work: it is told when that has settled.
    if (deadline !== undefined && !hasSettled(this.#at)) this.#options.watchdog?.update(deadline);
    const trouble = (error: unknown) => this.#scope.onTrouble('onBelief', error);
    try {
      const answer = this.#options.onBelief?.(deadline);
      if (answer instanceof Promise) answer.catch(trouble);
    } catch (error) {
      trouble(error);
    }
  }
}
