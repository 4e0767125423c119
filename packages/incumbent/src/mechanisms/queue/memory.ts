import { OwnWrites } from '../../core/attempts.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import type { Closed, Seen } from './closed.ts';
import { closedTo } from './closed.ts';
import { isLeadingIn, lastPlaceIn, leaderPlaceIn, wasLastIn } from './named-places.ts';
import type { QueueParts } from './settings.ts';
import type { Place, RecordReading } from './store.ts';
import { withoutNaming } from './successor.ts';

/** One look at the record and at the queue, in this order. */
export interface Look {
  readonly names: readonly string[];
  readonly reading: RecordReading;
  /** The time after both answers, monotonic. */
  readonly atMs: number;
}

/**
 * The memory of one handle on an election, kept from one campaign to the next. It knows which
 * leader the handle follows, and so how long it has to wait when it is the first.
 */
export class QueueMemory {
  /** All earlier terms of this handle are over by the next campaign. */
  readonly own: OwnWrites = new OwnWrites();
  /** The nonces with which a leader may have named this handle, which has not led by them. */
  #marks: readonly string[] = [];
  readonly #parts: Pick<QueueParts<unknown>, 'store' | 'scope' | 'settings'>;
  /** The time since which the leader in the record has been seen to be gone, monotonic. */
  #gone: { readonly token: bigint; readonly sinceMs: number } | undefined;
  /**
   * H of the leader that may still believe if the record is deleted by hand, once we have met a
   * leader. That is the last leader that the record named, or one that we know nothing of. Leaders
   * before it were waited out.
   */
  #followedBeliefMs = 0;
  #closed: Seen | undefined;

  constructor(parts: Pick<QueueParts<unknown>, 'store' | 'scope' | 'settings'>) {
    this.#parts = parts;
  }

  addMark(nonce: string): void {
    this.own.add(nonce);
    this.#marks = [...this.#marks, nonce];
  }

  /** @param isForeign a record with that nonce is another candidate's from now on */
  dropMark(nonce: string, isForeign: boolean): void {
    if (isForeign) this.own.forget(nonce);
    this.#marks = this.#marks.filter((mark) => mark !== nonce);
  }

  /**
   * A place that this handle has left may have been named in that moment. It never led, whether that
   * was taken back already or not.
   * @param place the present place
   */
  withoutOwnNaming(reading: RecordReading, place: Place | undefined): RecordReading {
    const { record } = reading;
    if (record?.holding === undefined || !this.#marks.includes(record.nonce)) return reading;
    if (place !== undefined && isLeadingIn(this.#parts.store, record, place)) return reading;
    return { ...reading, record: withoutNaming(record) };
  }

  /** True when the place of the leader in the record was not there at the last look. */
  get isLeaderGone(): boolean {
    return this.#gone !== undefined;
  }

  see({ reading: { record }, names, atMs }: Look): void {
    const leader = leaderPlaceIn(this.#parts.store, record);
    if (record === undefined || leader === undefined || names.includes(leader)) {
      this.#gone = undefined;
    } else if (this.#gone?.token !== record.token) {
      // Known by its token, for a name may come again. Counted from after the answers: its last
      // confirmation was committed while its place was there.
      this.#gone = { token: record.token, sinceMs: atMs };
    }
    const { beliefMs } = this.#parts.scope.timing;
    if (record?.holding !== undefined) {
      this.#followedBeliefMs = Math.max(beliefMs, record.beliefMs);
    } else if (record !== undefined && record.token > 0n && this.#followedBeliefMs > 0) {
      this.#followedBeliefMs = beliefMs;
    }
  }

  /** A member that we know nothing of is before us. */
  seeSomebodyBefore(): void {
    this.#followedBeliefMs = Math.max(this.#followedBeliefMs, this.#parts.scope.timing.beliefMs);
  }

  /** Why and for how long the seat stays closed to candidate `id`. Undefined: it is open. */
  closedTo(id: string, { reading: { record }, atMs }: Look): Closed | undefined {
    const now = { monotonicMs: atMs, wallMs: this.#parts.scope.clock.wallMs() };
    const closed = closedTo(id, record, now, this.#closed);
    if (closed === undefined) return undefined;
    this.#closed = closed.seen;
    return closed.leftMs > 0 ? closed : undefined;
  }

  /**
   * How long `place` has to wait before it may be announced, in ms from the time of the look.
   * @param firstSinceMs since when it has been the first, monotonic
   */
  waitMs(place: Place, { reading: { record }, atMs }: Look, firstSinceMs: number): number {
    const { scope, settings } = this.#parts;
    const { waitsForPredecessor, delayAfterWinMs } = settings;
    const delayMs = delayAfterWinMs - (atMs - firstSinceMs);
    if (!waitsForPredecessor) return delayMs;
    const { clockDrift } = scope.timing;
    const stretch = (1 + clockDrift) / (1 - clockDrift);
    let leftMs = delayMs;
    // Our own earlier term is known to be over: the same object has ended it.
    if (record?.holding !== undefined && !this.own.wrote(record)) {
      const goneSinceMs = this.#gone?.token === record.token ? this.#gone.sinceMs : atMs;
      leftMs = Math.max(leftMs, record.beliefMs * stretch - (atMs - goneSinceMs));
    }
    const unknownMs = this.#unknownBeliefMs(place, record);
    return Math.max(leftMs, unknownMs * stretch - (atMs - firstSinceMs));
  }

  /** H of a leader that may believe although the record does not name it. 0: there is none. */
  #unknownBeliefMs(place: Place, record: QueueRecord | undefined): number {
    const { store, scope } = this.#parts;
    // There is no record, or one that only an operator has written: the leader's was
    // deleted by hand.
    const wipedMs = record === undefined || record.token === 0n ? this.#followedBeliefMs : 0;
    // Members that write no record may have led since it was written.
    if (!store.isMixed) return wipedMs;
    const previous = lastPlaceIn(store, record);
    const isNext =
      // Our own announcement has landed, only its answer was lost.
      wasLastIn(store, record, place) ||
      (previous !== undefined && store.directlyFollows?.(place, previous) === true);
    return isNext ? wipedMs : Math.max(scope.timing.beliefMs, wipedMs);
  }
}
