/**
 * What a store owes the lock: a queue of which only the first place can be had. Whoever waits is not
 * in it, and enters when it is empty. Record, confirmation and release are the queue's.
 */
import type { Entry, Place, QueueStore, RecordReading, Watched } from '../queue/store.ts';

/** Who has the lock. */
export interface Holder {
  /** As `Place.name`: it has what no other holder's name has. */
  readonly name: string;
  /** As the place of whoever made it. */
  readonly place: Place;
  /** It lives and dies with our own session: we, or another candidate on the same client, made it. */
  readonly isOfOurSession: boolean;
}

export interface LockReading extends RecordReading {
  /**
   * The record is made up from what a member of another make has left, who led after all that ours have
   * written, or an operator's change has written that down. The store itself has numbered its term.
   */
  readonly isTheirs: boolean;
  /** The leader that the record names was fenced, by whoever led after it and has ended clean. */
  readonly wasFenced: boolean;
  /**
   * No term stands in the record, and none that was written before this (comparable with tokens) can:
   * whoever has had the lock before and led was forgotten, by hand. Undefined: a term stands in it.
   */
  readonly wipedAfter: bigint | undefined;
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
   * From now on only this entry may make the lock, of all on the same session: so what is found to be
   * of our session is known to be its. Ends with `leave`, `release` and the session.
   * @returns false while another candidate on the same client has it
   */
  claim(entry: Entry): boolean;
  isClaimedFor(entry: Entry): boolean;
  /** Calls `listener` when a claim on this lock has ended. @returns stops it */
  onUnclaimed(listener: () => void): () => void;
  /**
   * One attempt, under a claim.
   * @returns undefined when somebody has it, perhaps an earlier attempt of ours, or has deleted it since.
   *   Else also what was read *after* it was made: whoever the record names had lost the lock before
   */
  take(entry: Entry, signal: AbortSignal): Promise<TakenLock | undefined>;
  /** Who has the lock, and the record. */
  survey(signal: AbortSignal): Promise<Survey>;
  watchHolder(signal: AbortSignal): Promise<Watched<Holder | undefined>>;
  read(signal: AbortSignal): Promise<LockReading>;
}
