/// <reference lib="esnext.disposable" preserve="true" />
import { setMaxListeners } from 'node:events';
import type { CandidateInfo } from '../base/candidate.ts';
import { describeValue } from '../base/candidate.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { maxTimerMs } from '../base/clock.ts';
import {
  InvalidOptionError,
  MisuseError,
  NotLeadingError,
  TakeoverFailedError,
  TermEndedError,
} from '../base/errors.ts';
import { toJson, withJson } from '../base/json.ts';
import type { EndReason } from '../base/reasons.ts';
import { describeEnd } from '../base/reasons.ts';
import { Deferred } from '../base/wait.ts';
import type { LeaderRequest, UncleanLeader } from '../record/record.ts';
import { longestFenceFailure } from '../record/record.ts';
import { checkActors, describeActors } from './acting-processes.ts';
import type { Readiness } from './campaign-settings.ts';
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
import type { Reservation } from './give-back.ts';
import { GiveBack, reservationFor } from './give-back.ts';
import { checkProclamation, checkSignalOption } from './options.ts';
import { SeatKeeper } from './seat-keeper.ts';
import type { Proclamation, Term, TermOutcome, TermState } from './term.ts';
import type { TermAt, TermEffect, TermEnd, TermEvent } from './term-machine.ts';
import { endOf, firstTermAt, hasSettled, isKept, nextTermAt, shownAt } from './term-machine.ts';
import type { BeliefListeners } from './told-belief.ts';
import { ToldBelief } from './told-belief.ts';
import { WantedState } from './wanted-state.ts';

export interface HeldTermOptions extends BeliefListeners {
  readonly scope: Scope;
  readonly candidate: CandidateInfo;
  readonly actors: 'self' | 'declared';
  /** Undefined: the term is ready when it begins. */
  readonly readiness: Readiness | undefined;
}

/**
 * A term from the moment its seat is won: keeps it confirmed, stops it in order, gives it back. The
 * machine in term-machine.ts decides. This class reports events to the machine, and carries out its
 * effects.
 */
export class HeldTerm<Guard> implements Term<Guard>, SeatEvents {
  readonly election: string;
  readonly candidate: string;
  readonly incarnation: string;
  readonly token: bigint;
  readonly seat: number;
  readonly guard: Guard;
  readonly predecessor: Predecessor | undefined;
  readonly #scope: Scope;
  readonly #clock: Clock;
  readonly #contest: Contest<Guard>;
  readonly #options: HeldTermOptions;
  readonly #belief: ToldBelief;
  readonly #work = new AbortController();
  readonly #ended = new Deferred<TermOutcome>();
  readonly #left = new Deferred<void>();
  readonly #wanted: WantedState;
  readonly #keeper: SeatKeeper<Guard>;
  readonly #giveBack: GiveBack<Guard>;
  #at: TermAt = firstTermAt;
  /** The effects that the machine asks for, in order. */
  readonly #effects: TermEffect[] = [];
  #isActing = false;
  #sinceUnixMs: number;
  #pendingHook: Promise<void> | undefined;
  /** The declaration of actors before the next one. Never rejects. */
  #declaring: Promise<unknown> = Promise.resolve();
  #unfenced: readonly UncleanLeader[];
  #stopTimer: Timer | undefined;
  /** For the time that the work may take while it is renewed, and then for the end of belief. */
  #closingTimer: Timer | undefined;
  /** Ends a term that no record shows as ready in time. */
  #readyTimer: Timer | undefined;
  /** The revision of the wanted state that says first that the work is ready. */
  #readyRevision: number | undefined;
  #isWorkOfLead = false;
  #endListener: (() => void) | undefined;

  constructor(seat: Seat<Guard>, contest: Contest<Guard>, options: HeldTermOptions) {
    this.#scope = options.scope;
    this.#clock = options.scope.clock;
    this.#contest = contest;
    this.#options = options;
    // The work passes this signal to everything that it waits for.
    setMaxListeners(0, this.#work.signal);
    this.election = options.scope.election;
    this.candidate = options.candidate.id;
    this.incarnation = options.candidate.incarnation;
    this.token = seat.token;
    this.seat = seat.number ?? 1;
    this.guard = seat.guard;
    this.predecessor = seat.predecessor && withJson(seat.predecessor);
    this.#wanted = new WantedState(seat.state);
    this.#giveBack = new GiveBack(seat, options.scope);
    this.#unfenced = seat.unfenced;
    this.#sinceUnixMs = this.#clock.wallMs();
    this.#belief = new ToldBelief(seat.belief, options.scope, options);
    this.#armStopTimer();
    this.#keeper = new SeatKeeper(seat, {
      ...{ term: this, scope: this.#scope, belief: this.#belief, wanted: this.#wanted },
      isKept: () => isKept(this.#at),
      tell: (event) => this.#on(event),
      look: () => {
        this.checkMargin();
        // A wall clock that was set, or a host that slept, has moved the margin.
        this.#armStopTimer();
      },
    });
    seat.attach(this);
  }

  // --- for the work ---

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
    checkSignalOption('proclaim', options);
    const wanted = this.#wanted.state;
    await this.#show({ ...wanted, ...checkProclamation(proclamation, wanted) }, options.signal);
  }

  get isReady(): boolean {
    return this.#at.announced && this.#wanted.state.ready !== false;
  }

  async ready(options: { signal?: AbortSignal } = {}): Promise<void> {
    checkSignalOption('ready', options);
    if (this.#options.readiness === undefined) {
      throw new MisuseError(
        "term.ready() needs the option ready: 'manual'. Without it a term is ready when it begins",
      );
    }
    const { signal } = options;
    this.#work.signal.throwIfAborted();
    signal?.throwIfAborted();
    if (!this.isReady) {
      this.#want({ ...this.#wanted.state, ready: undefined });
      this.#readyRevision = this.#wanted.revision;
      // Not left to the wait below: its caller may give up sooner than the record shows it.
      this.#wanted.untilShown(this.#work.signal).then(
        () => {
          this.#readyTimer?.cancel();
          publish('incumbent:ready', this, { token: this.token });
        },
        () => {},
      );
    }
    await this.#wanted.untilShown(signal, this.#work.signal);
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
    // Declarations count in the order of the calls. A slow description must not replace a later
    // one.
    const described = this.#declaring.then(() => describeActors(processes, this.#contest));
    this.#declaring = described.catch(() => {});
    const actors = await described;
    // Nothing need be written where the store cannot prove a death, if the record is known
    // to show that.
    if (actors === null && this.#wanted.state.actors === null && this.#wanted.isShown) {
      this.#work.signal.throwIfAborted();
      return;
    }
    await this.#show({ ...this.#wanted.state, actors }, options.signal);
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
    const { election, candidate, token, state, isReady, sinceUnixMs, predecessor } = this;
    return toJson({ election, candidate, token, state, isReady, sinceUnixMs, predecessor });
  }

  // --- for the campaign ---

  /** This term ends with the work that `lead` was given. Disposing it is refused. */
  bindToWork(): void {
    this.#isWorkOfLead = true;
  }

  /** Calls `listener` right before `ended` resolves. */
  onceEnded(listener: () => void): void {
    this.#endListener = listener;
  }

  /**
   * The work is done. No candidate may take the seat before then, by its wall clock, nor for longer
   * than `mostMs`, however the clocks are set. The record is asked to say so, for the case that
   * this process dies.
   */
  holdUntil(unixMs: number, mostMs: number): void {
    this.#giveBack.holdUntil(unixMs, mostMs);
    this.#readyTimer?.cancel();
    if (this.isEnding) return;
    this.#want({ ...this.#wanted.state, held: { ms: mostMs, untilUnixMs: unixMs } });
  }

  /** True once an end is decided, for whatever reason. */
  get isEnding(): boolean {
    return endOf(this.#at) !== undefined;
  }

  /** Resolves when the seat was given back or left to run out, even if the work goes on. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  /** Belief left before the work must be told to stop, in ms. It bounds the hooks. */
  marginMs(): number {
    return this.#belief.remainingMs() - this.#scope.timing.stopMarginMs;
  }

  /** @throws the term's end, when belief − G has come and no timer has said so yet */
  requireMargin(): void {
    this.checkMargin();
    this.#work.signal.throwIfAborted();
  }

  /**
   * Call it when the predecessor is fenced. Makes the record say that this term leads. Resolves
   * when that is confirmed and the belief still holds.
   * @throws the term's end
   */
  async announce(): Promise<void> {
    const wanted = this.#wanted.state;
    if (!wanted.announced) {
      // From here on the record names this process as the only actor, if it is.
      let { actors } = wanted;
      if (this.#options.actors === 'self') {
        const self = await this.#contest.describe({ pid: process.pid });
        actors = self === undefined ? null : [self];
      }
      await this.#show({ ...this.#wanted.state, announced: true, actors });
    }
    if (this.marginMs() <= 0) this.#on({ on: 'lost', reason: 'stalled' });
    this.#work.signal.throwIfAborted();
    this.#unfenced = [];
    this.#on({ on: 'announced' });
    this.#sinceUnixMs = this.#clock.wallMs();
    publish('incumbent:leading', this, {
      token: this.token,
      remainingMs: this.#belief.remainingMs(),
      beliefMs: this.#scope.timing.beliefMs,
    });
    const { readiness } = this.#options;
    if (readiness === undefined) {
      publish('incumbent:ready', this, { token: this.token });
    } else if (!this.isEnding) {
      const { timeoutMs } = readiness;
      this.#readyTimer = this.#clock.setTimer(() => this.stop('not-ready'), timeoutMs);
    }
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
    this.#belief.onWorkSettled();
    this.#on({ on: 'settled' });
  }

  /**
   * The record shall say so. Only words that the hook has meant for operators are shown: other
   * errors may hold secrets.
   */
  couldNotFence({ token, incarnation }: UncleanLeader, error: unknown): void {
    const told = error instanceof TakeoverFailedError && error.cause === undefined;
    const why = told ? forRecord(error.why) : undefined;
    const failure = { by: this.candidate, ...(why !== undefined && { why }) };
    this.#unfenced = this.#unfenced.map((leader) =>
      leader.token === token && leader.incarnation === incarnation
        ? { ...leader, failure }
        : leader,
    );
  }

  /**
   * Names work that must be over before the term can count as settled: a fence hook. Never rejects.
   */
  holdSettling(hook: Promise<void>): void {
    this.#pendingHook = hook;
  }

  /**
   * Asks for an end. The first reason stays.
   * @param reservation the candidate that alone may take the seat for a while after it was given
   * back
   */
  stop(reason: EndReason, error?: unknown, reservation: Reservation = {}): void {
    if (this.isEnding) return;
    this.#giveBack.reserve(reservation);
    this.#on({ on: 'asked-to-stop', end: { reason, error } });
  }

  // --- the record ---

  #want(state: SeatState): void {
    this.#wanted.change(state);
    this.#keeper.wake();
  }

  /** Wants the record to show `state`, and waits until it does. */
  async #show(state: SeatState, signal?: AbortSignal): Promise<void> {
    this.#work.signal.throwIfAborted();
    signal?.throwIfAborted();
    this.#want(state);
    await this.#wanted.untilShown(signal, this.#work.signal);
  }

  // --- events of the seat ---

  onRequest(request: LeaderRequest): void {
    if (request.kind === 'vacate') {
      this.stop('vacated');
      return;
    }
    const reservation = reservationFor(request.to, this.#scope.timing, this.#contest);
    this.stop('handed-over', undefined, reservation);
  }

  onDrained(): void {
    this.stop('vacated');
  }

  onElectionEnded(): void {
    this.stop('election-ended');
  }

  onHint(): void {
    this.#keeper.wake();
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

  // --- losing the seat, ending the term ---

  /**
   * Tells the work to stop when belief − G has come. The timer may be late, so others call this
   * too.
   */
  checkMargin(): void {
    if (!isKept(this.#at)) return;
    if (this.marginMs() <= 0) {
      this.#on({ on: 'margin-over' });
    } else {
      this.#belief.tellWhatWasLost();
    }
  }

  #armStopTimer(): void {
    if (!isKept(this.#at)) return;
    this.#stopTimer?.cancel();
    // Timers count by the monotonic clock. The wall clock may reach its deadline sooner, by the
    // ratio of the two rates. So look again before that, but never wait less than a millisecond.
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
    // At once, whatever else is being done: belief must not last a moment longer.
    if (effects.some((effect) => effect.do === 'end-belief')) this.#belief.end();
    this.#effects.push(...effects);
    // A listener may answer with another event. Its effects come after those that are due already.
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

  /**
   * An effect may fail, as when a clock gives no timer. The others are carried out all the same.
   */
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
      case 'stop-keeping': {
        this.#stopTimer?.cancel();
        this.#keeper.stop();
        // A defect of ours must not keep the term for ever.
        const through = () => this.#on({ on: 'through' });
        void this.#keeper.ended.then(through, through);
        this.#waitOutBelief();
        return;
      }
      case 'end-belief':
        // `#on` has ended the belief already.
        this.#closingTimer?.cancel();
        return;
      case 'release':
        void this.#release(effect.reason).then((released) => this.#hasLeft(released));
        return;
      case 'tell-overrun':
        publish('incumbent:overrun', this, { token: this.token, reason: effect.reason });
        return;
      case 'abandon':
        void this.#giveBack.abandon().then(() => this.#hasLeft(false));
        return;
      case 'finish':
        this.#finish(effect);
    }
  }

  #stopWork({ reason, error }: TermEnd): void {
    this.#readyTimer?.cancel();
    const revision = this.#readyRevision;
    // A term that is renewed while its work stops must not become ready by that.
    if (revision !== undefined && !this.#wanted.shows(revision)) {
      this.#want({ ...this.#wanted.state, ready: false });
    }
    this.#work.abort(
      new TermEndedError(
        reason,
        this.token,
        `term ${this.token} of election "${this.election}" ended: ${describeEnd(reason)}`,
        error === undefined ? {} : { cause: error },
      ),
    );
  }

  /** When belief is over, work that has not settled has no leader behind it any more. */
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
    const error = overran ? end.error : (end.error ?? this.#giveBack.error);
    const settled = !overran;
    publish('incumbent:ended', this, { token: this.token, reason, released, settled, error });
    try {
      this.#endListener?.();
    } finally {
      this.#ended.resolve({
        reason,
        released,
        overrunMs: this.#belief.overrunMs,
        ...(error === undefined ? {} : { error }),
      });
    }
  }

  #release(reason: EndReason): Promise<boolean> {
    return this.#giveBack.release({
      ...{ reason, hasLed: this.#at.announced },
      ...{ fromUnixMs: this.#sinceUnixMs, unfenced: this.#unfenced },
    });
  }
}

/** Not every store takes a control character, or half a surrogate pair. */
function forRecord(words: string): string {
  return [...words.replace(/\p{C}/gu, ' ')].slice(0, longestFenceFailure).join('');
}
