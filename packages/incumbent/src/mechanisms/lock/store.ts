/**
 * The contract between a store and the lock. A lock is a queue with one place. A waiting candidate
 * is not in it, and enters when it is empty. Record, confirmation and release are the queue's.
 */
import type { Entry, Place, QueueStore, RecordReading, Watched } from '../queue/store.ts';

/** The candidate that has the lock. */
export interface Holder {
  /** As `Place.name`, with a part that no other holder's name has. */
  readonly name: string;
  /** The place, as its maker has it. */
  readonly place: Place;
  /**
   * It lives and dies with our own session: we, or another candidate on the same client, made it.
   */
  readonly isOfOurSession: boolean;
}

export interface LockReading extends RecordReading {
  /**
   * The record is made up from the breadcrumb of a member of another make. That member led after
   * all terms that ours have written. An operator's change may have written it down. The store
   * itself has numbered its term.
   */
  readonly isTheirs: boolean;
  /** The leader that the record names was fenced, by a later leader that has ended clean. */
  readonly wasFenced: boolean;
  /**
   * No term stands in the record, and none from before this number (comparable with tokens) can. An
   * earlier holder that led was forgotten, because the record was deleted by hand. Undefined: a
   * term stands in the record.
   */
  readonly wipedAfter: bigint | undefined;
  /**
   * A member of another make may have led since the record was written, and has left nothing that
   * would tell. Then every winner waits as long as such a leader may believe.
   */
  readonly mayFollowOther?: boolean;
}

export interface TakenLock {
  readonly place: Place;
  readonly reading: LockReading;
}

export interface Survey {
  readonly holder: Holder | undefined;
  readonly reading: LockReading;
}

export interface LockStore extends QueueStore {
  /**
   * From now on only this entry may make the lock, of all on the same session. So a lock of our
   * session is known to be its lock. Ends with `leave`, `release` and the session.
   * @returns false while another candidate on the same client has the claim
   */
  claim(entry: Entry): boolean;
  isClaimedFor(entry: Entry): boolean;
  /**
   * Calls `listener` when a claim on this lock has ended.
   * @returns a function that stops it
   */
  onUnclaimed(listener: () => void): () => void;
  /**
   * One attempt, under a claim.
   * @returns undefined when the lock has a holder, which may be an earlier attempt of ours, or was
   * deleted since. Otherwise the lock, and what was read *after* it was made: the leader that the
   * record names had lost the lock before
   */
  take(entry: Entry, signal: AbortSignal): Promise<TakenLock | undefined>;
  /** The holder of the lock, and the record. */
  survey(signal: AbortSignal): Promise<Survey>;
  watchHolder(signal: AbortSignal): Promise<Watched<Holder | undefined>>;
  read(signal: AbortSignal): Promise<LockReading>;
}
