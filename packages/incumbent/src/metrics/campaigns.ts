/**
 * Follows the campaigns of this process by what they publish on their diagnostics channels. Nothing
 * here may throw: Node makes an error of a subscriber an uncaught exception.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Clock } from '../base/clock.ts';
import { readClocks } from '../base/clock.ts';
import { Countdown, deadlineAfter } from '../base/deadline.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import type { EndReason } from '../base/reasons.ts';
import type { DiagnosticEvents, DiagnosticSource } from '../core/diagnostics.ts';

/** A term, from the win of its seat. */
export interface FollowedTerm {
  readonly token: bigint;
  readonly seat: number;
  readonly wonMs: number;
  readonly predecessor: 'none' | 'clean' | 'unclean';
  /** How long it believes after a confirmation, in ms. Undefined until the term begins. */
  beliefMs?: number;
  isReady: boolean;
  /** When the work was told to stop. */
  stoppingMs?: number;
}

/** A campaign, until it is over. */
export interface FollowedCampaign {
  readonly election: string;
  /** How many the election has. */
  readonly seats: number;
  readonly candidate: string;
  isUnhealthy: boolean;
  term?: FollowedTerm;
  /** Belief left, in ms. Zero or less: no term leads. */
  leftMs(): number;
}

export interface CampaignListener {
  begins?(campaign: FollowedCampaign): void;
  /** Waits for the seat. `why` when that is news. */
  waits?(campaign: FollowedCampaign, why: NotElectedReason | undefined): void;
  wins?(campaign: FollowedCampaign, term: FollowedTerm): void;
  /** The term begins, `tookMs` after its win. */
  leads?(campaign: FollowedCampaign, term: FollowedTerm, tookMs: number): void;
  stops?(campaign: FollowedCampaign, term: FollowedTerm): void;
  ends?(campaign: FollowedCampaign, term: FollowedTerm, end: FollowedEnd): void;
  confirms?(campaign: FollowedCampaign, elapsedMs: number): void;
  failsToConfirm?(campaign: FollowedCampaign): void;
  failsToTakeOver?(campaign: FollowedCampaign, error: unknown): void;
  overruns?(campaign: FollowedCampaign): void;
  isOver?(campaign: FollowedCampaign): void;
  hasTrouble?(election: string): void;
}

export interface FollowedEnd {
  readonly reason: EndReason;
  readonly released: boolean;
  readonly error: unknown;
  /** From the request to stop, in ms. Undefined for a term that never began. */
  readonly tookMs: number | undefined;
}

class Campaign implements FollowedCampaign {
  readonly election: string;
  readonly seats: number;
  readonly candidate: string;
  isUnhealthy = false;
  term?: FollowedTerm;
  readonly #clock: Clock;
  #countdown = new Countdown();

  constructor({ election, candidate, seats = 1 }: DiagnosticSource, clock: Clock) {
    this.election = election;
    this.seats = seats;
    this.candidate = candidate;
    this.#clock = clock;
  }

  /** Belief may also end without an event, as while this process stands still. */
  leftMs(): number {
    if (this.term?.beliefMs === undefined) return 0;
    return this.#countdown.look(readClocks(this.#clock));
  }

  begin(term: FollowedTerm): void {
    this.term = term;
    this.#countdown = new Countdown();
  }

  believes(remainingMs: number): void {
    this.#countdown.set(deadlineAfter(readClocks(this.#clock), remainingMs));
  }

  endBelief(): void {
    this.#countdown.clear();
  }
}

/** The campaigns of this process that are not over. */
export class Campaigns implements Iterable<FollowedCampaign> {
  readonly #clock: Clock;
  readonly #listener: CampaignListener;
  /** By incarnation: two candidates of a process may have one id. */
  readonly #campaigns = new Map<string, Campaign>();
  readonly #removers: (() => void)[] = [];

  constructor(clock: Clock, listener: CampaignListener) {
    this.#clock = clock;
    this.#listener = listener;
    this.#followWaiting();
    this.#followTerms();
    this.#followConfirmations();
  }

  [Symbol.iterator](): IterableIterator<FollowedCampaign> {
    return this.#campaigns.values();
  }

  close(): void {
    for (const remove of this.#removers.splice(0)) remove();
    this.#campaigns.clear();
  }

  #followWaiting(): void {
    const listener = this.#listener;
    this.#on('incumbent:waiting', (_, source) => {
      const campaign = this.#enter(source);
      if (campaign !== undefined) listener.waits?.(campaign, undefined);
    });
    this.#on('incumbent:waiting-for', ({ why }, source) => {
      const campaign = this.#enter(source);
      // A winner that waits for its predecessor is told so, too.
      if (campaign !== undefined && campaign.term === undefined) listener.waits?.(campaign, why);
    });
    this.#on('incumbent:health', ({ healthy }, source) => {
      const campaign = this.#enter(source);
      if (campaign !== undefined) campaign.isUnhealthy = !healthy;
    });
    this.#on('incumbent:campaign-ended', (_, source) => {
      const campaign = this.#find(source);
      if (campaign === undefined) return;
      this.#campaigns.delete(source.incarnation as string);
      listener.isOver?.(campaign);
    });
    this.#on('incumbent:trouble', (_, { election }) => listener.hasTrouble?.(election));
  }

  #followTerms(): void {
    const listener = this.#listener;
    this.#on('incumbent:won', ({ token, predecessor: before }, source) => {
      const campaign = this.#enter(source);
      if (campaign === undefined) return;
      const predecessor = before === undefined ? 'none' : before.clean ? 'clean' : 'unclean';
      const term = {
        token,
        seat: source.seat ?? 1,
        predecessor,
        wonMs: this.#clock.monotonicMs(),
        isReady: false,
      } as const;
      campaign.begin({ ...term });
      listener.wins?.(campaign, campaign.term as FollowedTerm);
    });
    this.#onTerm('incumbent:leading', ({ remainingMs, beliefMs }, campaign, term) => {
      term.beliefMs = beliefMs;
      campaign.believes(remainingMs);
      listener.leads?.(campaign, term, this.#clock.monotonicMs() - term.wonMs);
    });
    this.#onTerm('incumbent:ready', (_, __, term) => {
      term.isReady = true;
    });
    this.#onTerm('incumbent:state', ({ state }, campaign, term) => {
      if (state === 'ended') campaign.endBelief();
      if (state !== 'stopping' || term.stoppingMs !== undefined) return;
      term.stoppingMs = this.#clock.monotonicMs();
      listener.stops?.(campaign, term);
    });
    this.#onTerm('incumbent:takeover-failed', ({ error }, campaign) =>
      listener.failsToTakeOver?.(campaign, error),
    );
    this.#onTerm('incumbent:overrun', (_, campaign) => listener.overruns?.(campaign));
    this.#onTerm('incumbent:ended', ({ reason, released, error }, campaign, term) => {
      delete campaign.term;
      const { beliefMs, stoppingMs } = term;
      const hasLed = beliefMs !== undefined && stoppingMs !== undefined;
      const tookMs = hasLed ? this.#clock.monotonicMs() - stoppingMs : undefined;
      listener.ends?.(campaign, term, { reason, released, error, tookMs });
    });
  }

  #followConfirmations(): void {
    const listener = this.#listener;
    this.#onTerm('incumbent:confirmed', ({ elapsedMs, remainingMs }, campaign) => {
      campaign.believes(remainingMs);
      listener.confirms?.(campaign, elapsedMs);
    });
    this.#onTerm('incumbent:unconfirmed', (_, campaign) => listener.failsToConfirm?.(campaign));
  }

  /** The campaign of an event with which one may begin. */
  #enter(source: DiagnosticSource): Campaign | undefined {
    const known = this.#find(source);
    // Another copy of the library may be an older one, whose events have no incarnation.
    if (known !== undefined || source.incarnation === undefined) return known;
    const campaign = new Campaign(source, this.#clock);
    this.#campaigns.set(source.incarnation, campaign);
    this.#listener.begins?.(campaign);
    return campaign;
  }

  #find({ incarnation }: DiagnosticSource): Campaign | undefined {
    return incarnation === undefined ? undefined : this.#campaigns.get(incarnation);
  }

  #on<Name extends keyof DiagnosticEvents>(
    name: Name,
    hear: (payload: DiagnosticEvents[Name], source: DiagnosticSource) => void,
  ): void {
    const listener = (message: unknown) =>
      hear(message as DiagnosticEvents[Name], message as DiagnosticSource);
    subscribe(name, listener);
    this.#removers.push(() => unsubscribe(name, listener));
  }

  /** Hears of terms whose win was heard of. */
  #onTerm<Name extends TermChannel>(
    name: Name,
    hear: (payload: DiagnosticEvents[Name], campaign: Campaign, term: FollowedTerm) => void,
  ): void {
    this.#on(name, (payload, source) => {
      const campaign = this.#find(source);
      const { term } = campaign ?? {};
      // A late event of the term before must not touch this one.
      if (campaign === undefined || term === undefined || term.token !== payload.token) return;
      hear(payload, campaign, term);
    });
  }
}

/** The channels that tell of one term. */
type TermChannel = {
  [Name in keyof DiagnosticEvents]: DiagnosticEvents[Name] extends { token: bigint } ? Name : never;
}[keyof DiagnosticEvents];
