import type { Instant } from '../../base/clock.ts';
import { readClocks } from '../../base/clock.ts';
import { ElectionEndedError, StoreUnavailableError } from '../../base/errors.ts';
import type { NotElectedReason } from '../../base/not-elected.ts';
import { Wakeup } from '../../base/wait.ts';
import { Attempts } from '../../core/attempts.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { drainOf, electedSince, termsOf } from '../../record/record.ts';
import { unfencedAfter } from '../../record/transitions.ts';
import type { Contender, Verdict } from '../contend.ts';
import { askBounded } from '../queue/ask.ts';
import {
  confirmNow,
  firstMember,
  makeGuard,
  requireQuorum,
  tokensWentBack,
} from '../queue/candidate-checks.ts';
import type { Seen } from '../queue/closed.ts';
import { closedTo } from '../queue/closed.ts';
import type { Campaign } from '../queue/contender.ts';
import { isLeadingIn } from '../queue/named-places.ts';
import { QueueSeat } from '../queue/seat.ts';
import type { Entry, Place, Watched } from '../queue/store.ts';
import type { LockMemory } from './memory.ts';
import type { LockParts } from './settings.ts';
import type { Holder, LockReading, Survey } from './store.ts';

type Hindrance = Extract<NotElectedReason, { readonly kind: 'reserved' | 'held' | 'drained' }>;

/** A lock that is ours, and the time since which that is known. */
interface OurLock {
  readonly entry: Entry;
  readonly place: Place;
  readonly sentAt: Instant;
  /** Read after that time. */
  readonly found: LockReading;
}

/** One campaign for the lock: take it, or watch its holder. */
export class LockContender<Guard> implements Contender<QueueSeat<Guard>> {
  readonly #parts: LockParts<Guard>;
  readonly #memory: LockMemory;
  readonly #campaign: Campaign;
  readonly #wakeup = new Wakeup();
  readonly #stopListening: () => void;
  readonly #stopWaiting: () => void;
  #isAfterFailure = false;
  /** Set as long as an attempt of ours may have made the lock, or may still make it. */
  #entry: Entry | undefined;
  #watched: Watched<Holder | undefined> | undefined;
  /** The time since which a reservation or a held seat has been seen. */
  #seen: Seen | undefined;
  /** The first record that was looked at. */
  #found: { readonly record: QueueRecord | undefined } | undefined;

  constructor(parts: LockParts<Guard>, memory: LockMemory, campaign: Campaign) {
    this.#parts = parts;
    this.#memory = memory;
    this.#campaign = campaign;
    this.#stopListening = parts.store.session.onEvent((event) => {
      // Watches live on over a reconnection. Only failed calls are to be tried again at once.
      if (event === 'over' || (event === 'restored' && this.#isAfterFailure)) this.#wakeup.raise();
    });
    this.#stopWaiting = parts.store.onUnclaimed(() => this.#wakeup.raise());
  }

  async attempt(): Promise<Verdict<QueueSeat<Guard>>> {
    this.#wakeup.clear();
    const step = await this.#step();
    if (typeof step !== 'number') return { kind: 'won', seat: step };
    // A lock without a visible holder that we cannot make must not make the loop hot.
    if (step === 0) return { kind: 'unchanged' };
    return this.#campaign.once ? { kind: 'refused' } : { kind: 'wait', ms: step };
  }

  async pause(ms: number, hasFailed: boolean): Promise<void> {
    this.#isAfterFailure = hasFailed;
    await this.#wakeup.wait(this.#parts.scope.clock, ms, this.#campaign.signal);
    this.#isAfterFailure = false;
  }

  bearsFailure(): boolean {
    return !this.#campaign.once;
  }

  async leave(hasWon: boolean): Promise<void> {
    this.#stopListening();
    this.#stopWaiting();
    this.#watched?.cancel();
    const entry = this.#entry;
    if (!hasWon && entry !== undefined) await this.#parts.leftovers.leave(entry, undefined);
  }

  /**
   * Makes one decision.
   * @returns the seat, or how long to wait for an event in ms. 0: look again at once
   */
  async #step(): Promise<QueueSeat<Guard> | number> {
    // A lock that this entry may have made went with the session of its claim.
    if (this.#entry !== undefined && !this.#parts.store.isClaimedFor(this.#entry)) {
      this.#entry = undefined;
    }
    // The reply to an attempt of ours was lost. A server may lag behind its outcome.
    if (this.#entry !== undefined) {
      await this.#ask('catching up', (operation) => this.#parts.store.sync(operation));
    }
    requireQuorum(this.#parts.store.session);
    const { holder, reading } = await this.#survey();
    requireQuorum(this.#parts.store.session);
    this.#memory.seeRecord(reading);
    return holder === undefined ? this.#tryToTake(reading) : this.#meet(holder, reading);
  }

  /** The lock has a holder, and that may be us. */
  async #meet(holder: Holder, reading: LockReading): Promise<QueueSeat<Guard> | number> {
    const entry = this.#entry;
    if (entry === undefined) return this.#waitFor(holder, reading);
    // The lock is there, and the attempt that may have made it was ours.
    if (holder.isOfOurSession) {
      const { place } = holder;
      const { session } = this.#parts.store;
      const sentAt = await confirmNow(session, this.#parts.scope, place, this.#campaign.signal);
      if (sentAt === undefined) return 0;
      const { holder: now, reading: found } = await this.#survey();
      if (now?.name !== place.name) return 0;
      const isNamed = isLeadingIn(this.#parts.store, found.record, place);
      if (!isNamed || this.#memory.own.wrote(found.record)) {
        return this.#seatUnlessOvertaken({ entry, place, sentAt, found });
      }
      // A copy of this process has our session, and leads.
    }
    // Or it is another candidate's. Our earlier attempts are decided then: none of them
    // made this lock.
    await this.#resign();
    return this.#waitFor(holder, reading);
  }

  /** The lock has no holder. */
  async #tryToTake(reading: LockReading): Promise<QueueSeat<Guard> | number> {
    const { clock } = this.#parts.scope;
    const { candidate, candidacy, once } = this.#campaign;
    const record = this.#requireOpen(reading);
    const hindrance = this.#drained(record) ?? this.#closed(record);
    if (hindrance !== undefined) {
      await this.#resign();
      candidacy.onWaiting(hindrance);
      const leftMs = hindrance.untilUnixMs - clock.wallMs();
      return Math.min(Math.max(1, leftMs), this.#parts.scope.timing.pollEveryMs);
    }
    this.#found ??= { record };
    const elected = once ? electedSince(termsOf(this.#found.record), termsOf(record)) : undefined;
    if (elected !== undefined) {
      await this.#resign();
      candidacy.onWaiting(elected);
      return this.#lookAgainMs();
    }
    const entry = this.#entry ?? { guid: this.#parts.scope.uniqueId(), candidate };
    if (!this.#parts.store.claim(entry)) {
      const cause = new StoreUnavailableError('another candidate on this client takes the lock');
      candidacy.onWaiting({ kind: 'unreachable', cause });
      return this.#lookAgainMs();
    }
    this.#entry = entry;
    const sentAt = readClocks(clock);
    // A stop does not cut this short: a lock that is won meanwhile is given back in order.
    const { signal } = new AbortController();
    const taken = await askBounded(this.#parts.scope, 'taking the lock', signal, (operation) =>
      this.#parts.store.take(entry, operation),
    );
    if (taken === undefined) return 0;
    const { place, reading: found } = taken;
    return this.#seatUnlessOvertaken({ entry, place, sentAt, found });
  }

  /** Lets another candidate on the same client try. */
  async #resign(): Promise<void> {
    const entry = this.#entry;
    if (entry === undefined) return;
    await this.#ask('giving up', (operation) =>
      this.#parts.store.leave(entry, undefined, operation),
    );
    this.#entry = undefined;
  }

  /** From now on the next change of the lock wakes us up, unless we poll. */
  async #waitFor(holder: Holder, { record }: LockReading): Promise<number> {
    this.#memory.seeHolder(holder);
    this.#watched?.cancel();
    this.#watched = undefined;
    if (this.#parts.settings.pollMs === undefined) {
      const watched = await this.#ask('watching', (operation) =>
        this.#parts.store.watchHolder(operation),
      );
      this.#watched = watched;
      // The holder was gone before it could be watched.
      if (watched.value?.name !== holder.name) return 0;
      void watched.changed.then(() => {
        if (this.#watched === watched) this.#wakeup.raise();
      });
    }
    const isNamed = record?.holding !== undefined && record.token === holder.place.token;
    const why: NotElectedReason | undefined = isNamed
      ? { kind: 'led', id: record.holding.candidate.id, token: record.token }
      : await firstMember(this.#parts, this.#campaign.signal);
    const { candidate, candidacy } = this.#campaign;
    candidacy.onQueuePosition({ place: candidate.id, following: holder.name }, why);
    return this.#lookAgainMs();
  }

  #lookAgainMs(): number {
    const { pollMs, recheckMs } = this.#parts.settings;
    return (pollMs ?? recheckMs) * (1 - 0.1 * this.#parts.scope.random());
  }

  /**
   * A member of another make whose lock was deleted by hand may become active when ours has
   * been made. Tokens must rise, and its token is the higher one. So the lock is given back
   * and made anew.
   */
  async #seatUnlessOvertaken(lock: OurLock): Promise<QueueSeat<Guard> | number> {
    const { record, isTheirs } = lock.found;
    if (!isTheirs || record === undefined || record.token <= lock.place.token) {
      return this.#seat(lock);
    }
    await this.#resign();
    return 0;
  }

  /** The lock is ours. It is announced when the predecessor's belief is over and it is fenced. */
  #seat(lock: OurLock): QueueSeat<Guard> {
    const { place, found } = lock;
    const { record, wasFenced } = found;
    if (record !== undefined && record.token > place.token) {
      throw tokensWentBack(this.#parts.scope.election, record, place);
    }
    const wasOurs = this.#memory.own.wrote(record);
    const unfenced = wasFenced ? (record?.unfenced ?? []) : unfencedAfter(record, wasOurs);
    return new QueueSeat<Guard>(this.#parts, {
      ...lock,
      own: undefined,
      guard: makeGuard(this.#parts.settings.guard, place),
      state: { ...this.#campaign.candidacy.stateAtWin(unfenced), announced: false },
      shown: undefined,
      version: found.version,
      attempts: new Attempts(this.#memory.own),
      unfenced,
      waitMs: this.#memory.waitMs(found),
    });
  }

  /** Why and until when the seat stays closed to us. */
  #closed(record: QueueRecord | undefined): Hindrance | undefined {
    const closed = closedTo(
      this.#campaign.candidate.id,
      record,
      readClocks(this.#parts.scope.clock),
      this.#seen,
    );
    if (closed === undefined) return undefined;
    this.#seen = closed.seen;
    return closed.leftMs > 0 ? closed.why : undefined;
  }

  #drained(record: QueueRecord | undefined): Hindrance | undefined {
    const drain = drainOf(record, this.#campaign.candidate.id, this.#parts.scope.clock.wallMs());
    return drain && { kind: 'drained', untilUnixMs: drain.untilUnixMs };
  }

  /** @throws ElectionEndedError */
  #requireOpen({ record }: LockReading): QueueRecord | undefined {
    if (record?.ended === true) throw new ElectionEndedError(this.#parts.scope.election);
    return record;
  }

  #survey(): Promise<Survey> {
    return this.#ask('looking', (operation) => this.#parts.store.survey(operation));
  }

  #ask<T>(what: string, operation: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return askBounded(this.#parts.scope, what, this.#campaign.signal, operation);
  }
}
