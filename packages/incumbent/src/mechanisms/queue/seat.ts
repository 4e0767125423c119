import { Belief } from '../../base/belief.ts';
import type { Instant } from '../../base/clock.ts';
import { readClocks } from '../../base/clock.ts';
import { isIncurable, LeftBehindError } from '../../base/errors.ts';
import type { EndReason } from '../../base/reasons.ts';
import { bounded, sleep } from '../../base/wait.ts';
import type { Attempts } from '../../core/attempts.ts';
import type {
  Confirmation,
  Predecessor,
  Scope,
  Seat,
  SeatEnd,
  SeatEvents,
  SeatState,
} from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import type { Drain, UncleanLeader } from '../../record/record.ts';
import { drainOf } from '../../record/record.ts';
import { predecessorIn, released } from '../../record/transitions.ts';
import { announcedRecord } from './announcement.ts';
import { Confirmations } from './confirmations.ts';
import type { Leftovers } from './leftovers.ts';
import { isLeadingIn, leaderPlaceIn } from './named-places.ts';
import { NextInLine } from './next-in-line.ts';
import type { QueueParts, QueueSettings } from './settings.ts';
import type {
  CommitResult,
  Entry,
  NextPlace,
  Place,
  QueueStore,
  RecordReading,
  Version,
  Watched,
} from './store.ts';
import { namingRecord } from './successor.ts';
import type { PendingAnnouncement } from './take-back.ts';
import { takeBack } from './take-back.ts';
import type { SeatNews } from './watch-seat.ts';
import { watchSeat } from './watch-seat.ts';

/** How often one confirmation tries again on a version that an operator's write has moved. */
const triesPerConfirmation = 3;

/** A release is tried again soon, and then at growing intervals. */
const firstReleasePauseMs = 50;

export interface WonPlace<Guard> {
  readonly entry: Entry;
  readonly place: Place;
  /** The place behind it, when it was seen to be the first. */
  readonly next?: string | undefined;
  /** A watch on the place that is set already. */
  readonly own: Watched<boolean> | undefined;
  readonly guard: Guard;
  readonly sentAt: Instant;
  /** One that counts from `sentAt`, if there is one already. */
  readonly belief?: Belief;
  readonly state: SeatState;
  /** The record as it stood when the place was seen to be the first. */
  readonly found: RecordReading;
  /** The record that names us. Undefined until this term is announced. */
  readonly shown: QueueRecord | undefined;
  readonly version: Version;
  readonly attempts: Attempts;
  readonly unfenced: readonly UncleanLeader[];
  readonly waitMs: number;
}

/** The state of our term, by one look at the record. */
type Finding = 'ours' | 'not-announced' | EndReason;

/** The holder's side of the queue. */
export class QueueSeat<Guard> implements Seat<Guard> {
  readonly token: bigint;
  readonly guard: Guard;
  readonly sentAt: Instant;
  readonly belief: Belief;
  readonly state: SeatState;
  readonly predecessor: Predecessor | undefined;
  readonly unfenced: readonly UncleanLeader[];
  readonly waitBeforeAnnounceMs: number;
  readonly #store: QueueStore;
  readonly #scope: Scope;
  readonly #settings: QueueSettings<Guard>;
  readonly #leftovers: Leftovers;
  readonly #entry: Entry;
  readonly #place: Place;
  readonly #attempts: Attempts;
  readonly #confirmations: Confirmations;
  /** Foreign data stands in the place of the record, and we must not write there. */
  readonly #isForeign: boolean;
  /** The record as it is known to be. It names us once `#isNamed`. */
  #record: QueueRecord | undefined;
  #version: Version;
  #isNamed: boolean;
  /** The state that the record shows of us. */
  #shown: SeatState | undefined;
  readonly #found: QueueRecord | undefined;
  /** An announcement had no answer. */
  #mayBeNamed = false;
  /** A write of ours had no answer: look before the next one. */
  #isUnsure = false;
  /** Confirmations must have been sent after these, by the monotonic clock. */
  #confirmedMs: number;
  #freshFromMs = Number.NEGATIVE_INFINITY;
  #own: Watched<boolean> | undefined;
  /**
   * Set when the place was given up before the work has settled. Tells whether the place is gone.
   */
  #left: Promise<boolean> | undefined;
  readonly #next: NextInLine | undefined;
  #events: SeatEvents | undefined;
  #stopWatching: AbortController | undefined;
  #stopListening: (() => void) | undefined;

  constructor(parts: QueueParts<Guard>, won: WonPlace<Guard>) {
    const { store, scope, settings, leftovers } = parts;
    this.#store = store;
    this.#scope = scope;
    this.#settings = settings;
    this.#leftovers = leftovers;
    this.#entry = won.entry;
    this.#place = won.place;
    this.#own = won.own;
    this.#attempts = won.attempts;
    this.#isForeign = won.found.isForeign ?? false;
    this.#found = won.found.record;
    this.#record = won.shown ?? won.found.record;
    this.#version = won.version;
    this.#isNamed = won.shown !== undefined;
    this.#shown = this.#isNamed ? won.state : undefined;
    this.#confirmedMs = won.sentAt.monotonicMs;
    this.token = won.place.token;
    this.guard = won.guard;
    this.sentAt = won.sentAt;
    this.belief = won.belief ?? new Belief(scope.clock, scope.timing.beliefMs, won.sentAt);
    this.state = won.state;
    this.unfenced = won.unfenced;
    this.waitBeforeAnnounceMs = won.waitMs;
    const { record } = won.found;
    this.predecessor = predecessorIn(record, won.attempts.wrote(record));
    this.#confirmations = Confirmations.of(store.session, scope.clock);
    this.#confirmations.add(won.place, won.sentAt);
    const { succession } = store;
    if (succession === undefined || !settings.waitsForPredecessor) return;
    this.#next = new NextInLine({ store, scope, succession }, won.place, won.next);
  }

  attach(events: SeatEvents): void {
    this.#events = events;
    const { session } = this.#store;
    this.#stopListening = session.onEvent((event) => {
      if (event === 'over') {
        if (session.isOver(this.#place)) events.onLost('session-expired');
      } else if (event === 'suspended') {
        this.#onSuspended(events);
      } else {
        this.#requireFresh();
      }
    });
    const stop = new AbortController();
    this.#stopWatching = stop;
    const seat = { place: this.#place, own: this.#own, isForeign: this.#isForeign };
    const news: SeatNews = {
      onPlaceGone: () => this.#requireFresh(),
      onRecord: (reading) => this.#onRecord(reading),
      onEndMark: () => void this.#onEndMark(),
    };
    watchSeat({ store: this.#store, scope: this.#scope }, seat, news, stop.signal);
    this.#next?.watch(this.#entry, stop.signal);
    this.#deliver();
    if (session.isOver(this.#place)) events.onLost('session-expired');
    else if (session.isSuspended) this.#onSuspended(events);
  }

  async confirm(state: SeatState, signal: AbortSignal): Promise<Confirmation> {
    for (let tries = 0; tries < triesPerConfirmation; tries += 1) {
      if (this.#store.session.isOver(this.#place)) return lost('session-expired');
      if (this.#isUnsure) {
        const finding = this.#adopt(await this.#read(signal));
        if (finding !== 'ours' && finding !== 'not-announced') return this.#lostTo(finding);
      }
      if (this.#isForeign || !state.announced || state === this.#shown) {
        return this.#confirmPlace(state, signal);
      }
      // An operator has ended the election, or drained us. Then nothing is announced.
      if (!this.#isNamed && this.#isUnwanted()) return { outcome: 'unresolved' };
      let confirmation: Confirmation | undefined;
      try {
        confirmation = await this.#announce(state, signal);
      } catch (error) {
        if (!isIncurable(error) || this.#shown === undefined) throw error;
        // The proclaimed state cannot be written, perhaps for want of a right. The place
        // is still ours.
        this.#scope.onTrouble('writing the record', error);
        return this.#confirmPlace(this.#shown, signal);
      }
      if (confirmation !== undefined) return confirmation;
    }
    return { outcome: 'unresolved' };
  }

  async release(end: SeatEnd, signal: AbortSignal): Promise<boolean> {
    let successor = this.#next?.known;
    this.#detach();
    if (this.#left !== undefined) {
      if (await this.#left) return false;
      throw new LeftBehindError(this.#place.name);
    }
    const { clock, timing, onTrouble } = this.#scope;
    const startMs = clock.monotonicMs();
    const nonces = new Set<string>();
    let pauseMs = Math.min(firstReleasePauseMs, timing.retryBackoffMs);
    for (;;) {
      const pending = this.#pending;
      if (this.#store.session.isOver(this.#place)) {
        if (pending !== undefined) this.#leftovers.add(this.#entry, this.#place, pending);
        return false;
      }
      try {
        // A write without an answer may have landed.
        if (this.#isUnsure && this.#isNamed) {
          this.#isNamed = this.#adopt(await this.#read(signal)) === 'ours';
          if (!this.#isNamed) {
            this.#leftovers.add(this.#entry, this.#place);
            return false;
          }
        }
        // A term that was never announced leaves the record to its predecessor.
        if (pending !== undefined) {
          await this.#ask('releasing', signal, (operation) =>
            takeBack(this.#store, this.#scope, pending, operation),
          );
          return true;
        }
        const named = successor;
        // One attempt. Whatever is unusual, the seat is left vacant after it.
        successor = undefined;
        const result =
          (await this.#handOver(named, end, signal)) ?? (await this.#vacate(end, nonces, signal));
        if (result.outcome === 'ok') return true;
        const reading = await this.#read(signal);
        if (reading.record !== undefined && nonces.has(reading.record.nonce)) return true;
        if (result.outcome === 'gone') return false;
        // An operator's request came between, or our own last announcement without an answer.
        if (this.#adopt(reading) !== 'ours') this.#isNamed = false;
      } catch (error) {
        onTrouble('releasing', error);
        // The caller waits for three operation timeouts. Report before that which place
        // is left behind.
        const isLate = clock.monotonicMs() - startMs > 1.5 * timing.operationTimeoutMs;
        if (!isLate) await sleep(clock, pauseMs, signal).catch(() => {});
        if (isLate || signal.aborted) {
          this.#leftovers.add(this.#entry, this.#place, this.#pending);
          throw new LeftBehindError(this.#place.name, { cause: error });
        }
        pauseMs = Math.min(2 * pauseMs, timing.retryBackoffMs);
      }
    }
  }

  /**
   * Gives the seat to the next in line.
   * @returns undefined when the seat is to be left vacant
   */
  async #handOver(
    next: NextPlace | undefined,
    end: SeatEnd,
    signal: AbortSignal,
  ): Promise<CommitResult | undefined> {
    const { succession } = this.#store;
    const record = this.#record;
    if (succession === undefined || next === undefined) return undefined;
    if (record === undefined || !this.#isNamed) return undefined;
    const named = namingRecord(record, next, end, this.#scope.clock.wallMs());
    if (named === undefined) return undefined;
    const change = { record: named, version: this.#version };
    const result = await this.#ask('handing over', signal, (operation) =>
      succession.handOver(this.#place, next, change, operation),
    );
    return result.outcome === 'unfit' ? undefined : result;
  }

  #vacate(end: SeatEnd, nonces: Set<string>, signal: AbortSignal): Promise<CommitResult> {
    const next = this.#isNamed ? this.#vacantRecord(end) : undefined;
    if (next !== undefined) nonces.add(next.nonce);
    return this.#ask('releasing', signal, (operation) =>
      this.#store.release(this.#place, next, this.#version, operation),
    );
  }

  async abandon(): Promise<void> {
    this.#detach();
    // Belief has ended. The session may live for ever, and no candidate behind this
    // place could lead.
    if (await (this.#left ?? this.#leftovers.leave(this.#entry, this.#place, this.#pending)))
      return;
    throw new LeftBehindError(this.#place.name);
  }

  /** The announcement of a term that has not led. It may have landed, or may land yet. */
  get #pending(): PendingAnnouncement | undefined {
    if (!this.#mayBeNamed || this.#isNamed) return undefined;
    return { place: this.#place, before: this.#found, attempts: this.#attempts };
  }

  #detach(): void {
    this.#events = undefined;
    this.#confirmations.delete(this.#place);
    this.#stopListening?.();
    this.#stopWatching?.abort();
    this.#own?.cancel();
    this.#own = undefined;
  }

  // --- confirming ---

  async #confirmPlace(state: SeatState, signal: AbortSignal): Promise<Confirmation> {
    const sentAt = await this.#confirmations.confirm(
      this.#place,
      ({ monotonicMs }) => monotonicMs > this.#confirmedMs && monotonicMs >= this.#freshFromMs,
      this.#scope.timing.operationTimeoutMs,
      signal,
    );
    if (sentAt === undefined) return lost(await this.#whyGone(signal));
    this.#confirmedMs = sentAt.monotonicMs;
    return { outcome: 'confirmed', sentAt, state };
  }

  /**
   * Makes the record name us, or show `state`.
   * @returns undefined when it is to be tried again
   */
  async #announce(state: SeatState, signal: AbortSignal): Promise<Confirmation | undefined> {
    const announcement = { candidate: this.#entry.candidate, place: this.#place, state };
    const next = announcedRecord(this.#store, this.#scope, this.#record, announcement);
    const sentAt = readClocks(this.#scope.clock);
    this.#attempts.add(next, { sentAt, state });
    let result: CommitResult;
    try {
      result = await this.#ask('announcing', signal, (operation) =>
        this.#store.commit(this.#place, next, this.#version, operation),
      );
    } catch (error) {
      this.#isUnsure = true;
      if (!this.#isNamed) this.#mayBeNamed = true;
      throw error;
    }
    switch (result.outcome) {
      case 'ok':
        this.#record = next;
        this.#version = result.version;
        this.#isNamed = true;
        this.#mayBeNamed = false;
        this.#shown = state;
        this.#attempts.settle(next.nonce);
        this.#confirmedMs = Math.max(this.#confirmedMs, sentAt.monotonicMs);
        return { outcome: 'confirmed', sentAt, state };
      case 'gone':
        // Where names come again, it may have landed at the place of another candidate.
        if (!this.#isNamed && this.#store.outdate !== undefined) this.#mayBeNamed = true;
        return lost(await this.#whyGone(signal));
      case 'conflict': {
        const finding = this.#adopt(await this.#read(signal));
        if (finding !== 'ours' && finding !== 'not-announced') return this.#lostTo(finding);
        return undefined;
      }
      default:
        return result satisfies never;
    }
  }

  /** Takes over the record, and finds what it says of our term and of operators' requests. */
  #adopt(reading: RecordReading): Finding {
    const { record } = reading;
    if (this.#wasDeleted(reading)) return 'election-ended';
    const before = this.#record;
    const isNamed = isLeadingIn(this.#store, record, this.#place);
    // A copy of this process has our place too, and was faster.
    if (isNamed && !this.#attempts.wrote(record)) return 'superseded';
    if (!isNamed) {
      // No other candidate can have been announced while our place was there, unless by hand.
      if (record !== undefined && record.token > this.token) return 'superseded';
      if (this.#isNamed || record?.token === this.token) return 'record-gone';
      if (leaderPlaceIn(this.#store, before) !== leaderPlaceIn(this.#store, record)) {
        // Another candidate led between our look at the record and the one at the queue, or the
        // record was changed by hand. We wait for a leader that is no longer the right one.
        return record?.holding === undefined ? 'record-gone' : 'superseded';
      }
      this.#record = record;
      this.#version = reading.version;
      this.#isUnsure = false;
      this.#deliver();
      return 'not-announced';
    }
    const attempt = this.#attempts.find(record.nonce);
    if (attempt !== undefined) this.#shown = attempt.state;
    this.#record = record;
    this.#version = reading.version;
    this.#isNamed = true;
    this.#mayBeNamed = false;
    this.#isUnsure = false;
    if (record.holding.revoked) return 'vacated';
    this.#deliver();
    return 'ours';
  }

  /** GoLea deletes an election together with the mark of its end. */
  #wasDeleted({ version }: RecordReading): boolean {
    return this.#store.endMark !== undefined && version === undefined;
  }

  /**
   * A place that was taken away by force is gone. Beside members that do not wait, belief must end.
   */
  #lostTo(reason: EndReason): Confirmation {
    return { outcome: 'lost', reason, endsBelief: this.#store.isMixed };
  }

  async #whyGone(signal: AbortSignal): Promise<EndReason> {
    const { session } = this.#store;
    if (session.isOver(this.#place)) return 'session-expired';
    // The next leader may know nothing of our record, so there is no time to look why.
    if (this.#store.isMixed) return 'record-gone';
    try {
      const { record } = await this.#read(signal);
      if (record?.ended === true) return 'election-ended';
      const isNamed = isLeadingIn(this.#store, record, this.#place);
      if (isNamed && record.holding.revoked) return 'vacated';
      if (record !== undefined && record.token > this.token) return 'superseded';
    } catch (error) {
      this.#scope.onTrouble('looking why a place is gone', error);
    }
    return session.isOver(this.#place) ? 'session-expired' : 'record-gone';
  }

  // --- events of the store ---

  #onSuspended(events: SeatEvents): void {
    if (this.#settings.stepsDownWhenDisconnected) events.onDisconnected();
    else events.onUncertain();
  }

  /** Only a confirmation that is sent from now on counts. */
  #requireFresh(): void {
    this.#freshFromMs = this.#scope.clock.monotonicMs();
    this.#events?.onHint();
  }

  /**
   * Our own operators mark the end in the record as well, and the term ends in order. GoLea's
   * `DeleteElection` marks it nowhere else, and deletes all places as it found them. It fails if a
   * place is there a fifth of a second later, so ours goes at once. No candidate leads behind it
   * while the mark is there.
   */
  async #onEndMark(): Promise<void> {
    try {
      const { record } = await this.#read(new AbortController().signal);
      if (record?.ended === true) {
        this.#events?.onElectionEnded();
        return;
      }
    } catch (error) {
      this.#scope.onTrouble('looking why the election is over', error);
    }
    if (this.#events === undefined || this.#left !== undefined) return;
    // Belief ends first: others may lead an election that comes after this one.
    this.#events.onLost('election-ended');
    this.#left = this.#leftovers.leave(this.#entry, this.#place);
  }

  #onRecord(reading: RecordReading): void {
    if (this.#events === undefined || reading.version === this.#version) return;
    // This reading may be older than a write of ours whose answer was faster. The next confirmation
    // looks again, behind all writes.
    this.#isUnsure = true;
    this.#events.onHint();
  }

  #isUnwanted(): boolean {
    if (this.#record === undefined) return false;
    return this.#record.ended || this.#drain !== undefined;
  }

  /** Reports operators' requests in the record to the term. */
  #deliver(): void {
    const record = this.#record;
    if (record === undefined) return;
    if (record.ended) this.#events?.onElectionEnded();
    const request = record.holding?.request;
    if (request !== undefined && isLeadingIn(this.#store, record, this.#place)) {
      this.#events?.onRequest(request);
    }
    const drain = this.#drain;
    if (drain !== undefined) this.#events?.onDrained(drain.untilUnixMs);
  }

  get #drain(): Drain | undefined {
    return drainOf(this.#record, this.#entry.candidate.id, this.#scope.clock.wallMs());
  }

  // --- writes ---

  #vacantRecord(end: SeatEnd): QueueRecord {
    const wallMs = this.#scope.clock.wallMs();
    const writing = { nonce: this.#scope.uniqueId(), wallMs };
    return released(this.#record as QueueRecord, this.#entry.candidate, end, writing);
  }

  #read(signal: AbortSignal): Promise<RecordReading> {
    return this.#ask('reading', signal, (operation) => this.#store.read(operation));
  }

  #ask<T>(
    what: string,
    signal: AbortSignal,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, timing, election } = this.#scope;
    const name = `${what} in election "${election}"`;
    return bounded(clock, name, timing.operationTimeoutMs, signal, operation);
  }
}

function lost(reason: EndReason): Confirmation {
  return { outcome: 'lost', reason };
}
