/**
 * The race for a lock node (Hadoop's ActiveStandbyElector): whoever makes it leads, everybody else
 * watches it, and all race again when it is gone. For small groups: all of them wake up.
 *
 * The name of the lock recurs, so nothing is concluded from the name alone. "It exists" is never by
 * itself "somebody else has it": the reply of an own attempt may have been lost. And what is there is
 * ours only if it is of our session, which only one candidate at a time may use (`claim`), and has the
 * number that it had when it was won.
 */

import type { CandidateInfo } from '../../base/candidate.ts';
import type { Instant } from '../../base/clock.ts';
import { readClocks } from '../../base/clock.ts';
import { ElectionEndedError, StoreUnavailableError } from '../../base/errors.ts';
import type { NotElectedReason } from '../../base/not-elected.ts';
import { bounded, Wakeup } from '../../base/wait.ts';
import { Attempts, OwnWrites } from '../../core/attempts.ts';
import type { Candidacy, Contest, Patience, Scope, Seat } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { termsOf } from '../../record/queue-record.ts';
import { electedSince } from '../../record/record.ts';
import { unfencedAfter } from '../../record/transitions.ts';
import type { Contender } from '../contend.ts';
import { contend } from '../contend.ts';
import { Confirmations } from '../queue/confirmations.ts';
import type { Leftovers } from '../queue/leftovers.ts';
import { isLeadingIn } from '../queue/named-places.ts';
import { patienceMs } from '../queue/patience.ts';
import { QueueSeat } from '../queue/seat.ts';
import type { QueueSettings } from '../queue/settings.ts';
import type { Entry, Place, Watched } from '../queue/store.ts';
import { makeGuard, requireQuorum, tokensWentBack } from '../queue/winning.ts';
import type { Holder, LockReading, LockStore, Survey } from './store.ts';

export interface LockSettings<Guard> extends QueueSettings<Guard> {
  /** Look so often at the lock instead of watching it. */
  readonly pollMs: number | undefined;
}

const standAsideMs = 1_000;

type Closed = Extract<NotElectedReason, { readonly kind: 'reserved' | 'held' | 'drained' }>;

/** What a candidate has of the lock while it campaigns. */
interface Standing {
  /** Set as long as an attempt of ours may have made the lock, or may still make it. */
  entry: Entry | undefined;
  watched: Watched<Holder | undefined> | undefined;
  /** Since when a reservation or a held seat has been seen, monotonic. */
  reserved: { readonly nonce: string; readonly sinceMs: number } | undefined;
  readonly candidacy: Candidacy;
  /** It does not wait for others. */
  readonly once: boolean;
  /** The first record that was looked at. */
  found: { readonly record: QueueRecord | undefined } | undefined;
}

export class LockRace<Guard> implements Contest<Guard> {
  readonly standAsideMs: number;
  readonly #store: LockStore;
  readonly #scope: Scope;
  readonly #settings: LockSettings<Guard>;
  readonly #leftovers: Leftovers;
  #candidate: CandidateInfo;
  /** Kept from one campaign to the next: whatever this handle has led before is over by then. */
  readonly #own = new OwnWrites();
  /**
   * Token of the first holder that was seen: a later one may only have waited, as we do, for the
   * belief of the one before it.
   */
  #followed: bigint | undefined;
  /** H of the last leader that a record named; 0 when it ended clean. Those before it were waited out. */
  #followedBeliefMs = 0;

  constructor(
    store: LockStore,
    scope: Scope,
    candidate: CandidateInfo,
    settings: LockSettings<Guard>,
    leftovers: Leftovers,
  ) {
    this.#store = store;
    this.#scope = scope;
    this.#candidate = candidate;
    this.#settings = settings;
    this.#leftovers = leftovers;
    // Who polls does not see a free lock any sooner.
    const { pollMs } = settings;
    const { operationTimeoutMs } = scope.timing;
    this.standAsideMs =
      pollMs === undefined
        ? standAsideMs
        : Math.max(standAsideMs, 1.1 * pollMs + operationTimeoutMs);
  }

  present(candidate: CandidateInfo): void {
    this.#candidate = candidate;
  }

  /** A session proves no death: it may outlive its process, and end before it. */
  async describe(): Promise<undefined> {
    return undefined;
  }

  campaign(
    candidacy: Candidacy,
    patience: Patience,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | undefined> {
    const once = patience !== 'wait';
    const wakeup = new Wakeup();
    let isAfterFailure = false;
    const stopListening = this.#store.session.onEvent((event) => {
      // Watches live on over a reconnection; only what failed is to be tried again at once.
      if (event === 'over' || (event === 'restored' && isAfterFailure)) wakeup.raise();
    });
    const stopWaiting = this.#store.onUnclaimed(() => wakeup.raise());
    const standing: Standing = {
      entry: undefined,
      watched: undefined,
      reserved: undefined,
      candidacy,
      once,
      found: undefined,
    };
    const contender: Contender<QueueSeat<Guard>> = {
      attempt: async () => {
        wakeup.clear();
        const step = await this.#step(standing, wakeup, signal);
        if (typeof step !== 'number') return { kind: 'won', seat: step };
        // What is made by nobody we see, and cannot be made by us, must not make the loop hot.
        if (step === 0) return { kind: 'unchanged' };
        return once ? { kind: 'refused' } : { kind: 'wait', ms: step };
      },
      pause: async (ms, hasFailed) => {
        isAfterFailure = hasFailed;
        await wakeup.wait(this.#scope.clock, ms, signal);
        isAfterFailure = false;
      },
      bearsFailure: () => !once,
      leave: async (hasWon) => {
        stopListening();
        stopWaiting();
        standing.watched?.cancel();
        const { entry } = standing;
        if (!hasWon && entry !== undefined) await this.#leftovers.leave(entry, undefined);
      },
    };
    return contend(contender, candidacy, this.#scope, signal);
  }

  /** One decision. @returns the seat, or how long to wait for an event; 0: look again at once */
  async #step(
    standing: Standing,
    wakeup: Wakeup,
    signal: AbortSignal,
  ): Promise<QueueSeat<Guard> | number> {
    const { clock } = this.#scope;
    const { candidacy } = standing;
    // What it may have made went with the session that it was claimed in.
    if (standing.entry !== undefined && !this.#store.isClaimedFor(standing.entry)) {
      standing.entry = undefined;
    }
    // The reply to an attempt of ours was lost: a server may lag behind what has become of it.
    if (standing.entry !== undefined) {
      await this.#ask('catching up', signal, (operation) => this.#store.sync(operation));
    }
    requireQuorum(this.#store.session);
    const { holder, reading } = await this.#survey(signal);
    requireQuorum(this.#store.session);
    if (reading.record !== undefined && reading.record.token > 0n) {
      const { holding, beliefMs } = reading.record;
      this.#followedBeliefMs = holding === undefined ? 0 : beliefMs;
    }
    if (holder !== undefined) {
      const { entry } = standing;
      if (entry === undefined) return this.#waitFor(holder, reading, standing, wakeup, signal);
      // It is there, and the attempt that may have made it was ours.
      if (holder.isOfOurSession) {
        const { place } = holder;
        const sentAt = await this.#confirm(place, signal);
        if (sentAt === undefined) return 0;
        const { holder: now, reading: found } = await this.#survey(signal);
        if (now?.name !== place.name) return 0;
        const isNamed = isLeadingIn(this.#store, found.record, place);
        if (!isNamed || this.#own.wrote(found.record)) {
          return this.#seatUnlessOvertaken(entry, place, sentAt, found, standing, signal);
        }
        // A copy of this process has our session, and leads.
      }
      // Or somebody else's, and what we have asked for before is decided: none of it is there.
      await this.#resign(standing, signal);
      return this.#waitFor(holder, reading, standing, wakeup, signal);
    }
    const record = this.#requireOpen(reading);
    const hindrance = this.#drained(record) ?? this.#reserved(standing, record);
    if (hindrance !== undefined) {
      await this.#resign(standing, signal);
      candidacy.onWaiting(hindrance);
      const leftMs = hindrance.untilUnixMs - clock.wallMs();
      return Math.min(Math.max(1, leftMs), this.#scope.timing.pollEveryMs);
    }
    standing.found ??= { record };
    const elected = standing.once
      ? electedSince(termsOf(standing.found.record), termsOf(record))
      : undefined;
    if (elected !== undefined) {
      await this.#resign(standing, signal);
      candidacy.onWaiting(elected);
      return this.#patienceMs();
    }
    const entry = standing.entry ?? { guid: this.#scope.uniqueId(), candidate: this.#candidate };
    if (!this.#store.claim(entry)) {
      const cause = new StoreUnavailableError('another candidate on this client takes the lock');
      candidacy.onWaiting({ kind: 'unreachable', cause });
      return this.#patienceMs();
    }
    standing.entry = entry;
    const sentAt = readClocks(clock);
    // Not cut short by whoever wants us to stop: what is won meanwhile is given back in order.
    const taken = await this.#ask('taking the lock', new AbortController().signal, (operation) =>
      this.#store.take(entry, operation),
    );
    if (taken === undefined) return 0;
    return this.#seatUnlessOvertaken(entry, taken.place, sentAt, taken.reading, standing, signal);
  }

  /** Lets another candidate on the same client try. */
  async #resign(standing: Standing, signal: AbortSignal): Promise<void> {
    const { entry } = standing;
    if (entry === undefined) return;
    await this.#ask('giving up', signal, (operation) =>
      this.#store.leave(entry, undefined, operation),
    );
    standing.entry = undefined;
  }

  /** From now on the next change of the lock wakes us up, unless we poll. */
  async #waitFor(
    holder: Holder,
    { record }: LockReading,
    standing: Standing,
    wakeup: Wakeup,
    signal: AbortSignal,
  ): Promise<number> {
    this.#followed ??= holder.place.token;
    standing.watched?.cancel();
    standing.watched = undefined;
    if (this.#settings.pollMs === undefined) {
      const watched = await this.#ask('watching', signal, (operation) =>
        this.#store.watchHolder(operation),
      );
      standing.watched = watched;
      // Gone before it could be watched.
      if (watched.value?.name !== holder.name) return 0;
      void watched.changed.then(() => {
        if (standing.watched === watched) wakeup.raise();
      });
    }
    const why = await this.#whoLeads(holder, record, signal);
    standing.candidacy.onStanding({ place: this.#candidate.id, following: holder.name }, why);
    return this.#patienceMs();
  }

  async #whoLeads(
    holder: Holder,
    record: QueueRecord | undefined,
    signal: AbortSignal,
  ): Promise<NotElectedReason | undefined> {
    if (record?.holding !== undefined && record.token === holder.place.token) {
      return { kind: 'led', id: record.holding.candidate.id, token: record.token };
    }
    const [member] = await this.#ask('listing', signal, (operation) =>
      this.#store.members(operation, 1),
    );
    return member && { kind: 'led', id: member.candidate.id, token: member.token };
  }

  #patienceMs(): number {
    const { pollMs, recheckMs } = this.#settings;
    return (pollMs ?? recheckMs) * (1 - 0.1 * this.#scope.random());
  }

  /** When the lock was last known to be ours. Undefined when it is not. */
  #confirm(place: Place, signal: AbortSignal): Promise<Instant | undefined> {
    const { clock, timing } = this.#scope;
    const fromMs = clock.monotonicMs();
    return Confirmations.of(this.#store.session, clock).confirm(
      place,
      ({ monotonicMs }) => monotonicMs >= fromMs,
      timing.operationTimeoutMs,
      signal,
    );
  }

  /**
   * A member of another make whose lock was deleted by hand may become active when ours has been made.
   * Tokens rise, and that one's is the higher one: so the lock is given back and made anew.
   */
  async #seatUnlessOvertaken(
    entry: Entry,
    place: Place,
    sentAt: Instant,
    found: LockReading,
    standing: Standing,
    signal: AbortSignal,
  ): Promise<QueueSeat<Guard> | number> {
    const { record, isTheirs } = found;
    if (!isTheirs || record === undefined || record.token <= place.token) {
      return this.#seat(entry, place, sentAt, found, standing.candidacy);
    }
    await this.#resign(standing, signal);
    return 0;
  }

  /**
   * The lock is ours; it is announced when the predecessor's belief is over and it is fenced.
   * @param found read after the lock was ours
   */
  #seat(
    entry: Entry,
    place: Place,
    sentAt: Instant,
    found: LockReading,
    candidacy: Candidacy,
  ): QueueSeat<Guard> {
    requireRisingTokens(this.#scope.election, place, found.record);
    const { record, wasFenced } = found;
    const wasOurs = record?.holding !== undefined && this.#own.wrote(record);
    const unfenced = wasFenced ? (record?.unfenced ?? []) : unfencedAfter(record, wasOurs);
    return new QueueSeat<Guard>(this.#store, this.#scope, this.#settings, this.#leftovers, {
      entry,
      place,
      own: undefined,
      guard: makeGuard(this.#settings.guard, place),
      sentAt,
      state: { ...candidacy.stateAtWin(unfenced), announced: false },
      found,
      shown: undefined,
      version: found.version,
      attempts: new Attempts(this.#own),
      unfenced,
      waitMs: this.#waitMs(found),
    });
  }

  #waitMs({ record, wipedAfter }: LockReading): number {
    const { waitsForPredecessor, delayAfterWinMs } = this.#settings;
    const { clockDrift, beliefMs } = this.#scope.timing;
    if (!waitsForPredecessor) return delayAfterWinMs;
    const holding = record?.holding;
    let waitMs = 0;
    // One's own earlier term is known to be over: the same object has ended it.
    if (record !== undefined && holding !== undefined && !this.#own.wrote(record)) {
      waitMs = record.beliefMs;
    }
    // Somebody deleted by hand what would say whether the one we followed led, and ended clean.
    if (wipedAfter !== undefined && this.#followed !== undefined && wipedAfter > this.#followed) {
      waitMs = Math.max(waitMs, beliefMs, this.#followedBeliefMs);
    }
    return Math.max(delayAfterWinMs, (waitMs * (1 + clockDrift)) / (1 - clockDrift));
  }

  /** Why and until when the seat stays closed to us. */
  #reserved(standing: Standing, record: QueueRecord | undefined): Closed | undefined {
    const { clock } = this.#scope;
    const { reservation, holding } = record ?? {};
    const reserved =
      holding?.held ??
      (reservation === undefined || reservation.for === this.#candidate.id
        ? undefined
        : { ms: reservation.reserveMs, untilUnixMs: reservation.untilUnixMs });
    if (record === undefined || reserved === undefined) return undefined;
    const nowMs = clock.monotonicMs();
    const wallMs = clock.wallMs();
    if (standing.reserved?.nonce !== record.nonce) {
      standing.reserved = { nonce: record.nonce, sinceMs: nowMs };
    }
    const leftMs = Math.min(
      reserved.untilUnixMs - wallMs,
      reserved.ms - (nowMs - standing.reserved.sinceMs),
    );
    if (leftMs <= 0) return undefined;
    const untilUnixMs = wallMs + leftMs;
    if (holding?.held !== undefined) {
      return { kind: 'held', by: holding.candidate.id, untilUnixMs };
    }
    const whom = reservation?.for === undefined ? {} : { for: reservation.for };
    return { kind: 'reserved', ...whom, untilUnixMs };
  }

  #drained(record: QueueRecord | undefined): Closed | undefined {
    const drain = record?.drains.find(({ id }) => id === this.#candidate.id);
    if (drain === undefined || drain.untilUnixMs <= this.#scope.clock.wallMs()) return undefined;
    return { kind: 'drained', untilUnixMs: drain.untilUnixMs };
  }

  /** @throws ElectionEndedError */
  #requireOpen({ record }: LockReading): QueueRecord | undefined {
    if (record?.ended === true) throw new ElectionEndedError(this.#scope.election);
    return record;
  }

  #survey(signal: AbortSignal): Promise<Survey> {
    return this.#ask('looking', signal, (operation) => this.#store.survey(operation));
  }

  #ask<T>(
    what: string,
    signal: AbortSignal,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, timing, election, onAnswer } = this.#scope;
    const name = `${what} in election "${election}"`;
    return bounded(clock, name, patienceMs(timing), signal, operation, onAnswer);
  }
}

/** @throws StoreUnsuitableError */
function requireRisingTokens(
  election: string,
  place: Place,
  record: QueueRecord | undefined,
): void {
  if (record === undefined || record.token <= place.token) return;
  throw tokensWentBack(election, record, place);
}
