/** What a store with sessions owes the queue. It never interprets time and has no timer of its own. */
import type { CandidateInfo } from '../../base/candidate.ts';
import type { QueueRecord } from '../../record/queue-record.ts';

/** What the store compares: opaque, and different after every write of the record. */
export type Version = string | number | bigint | undefined;

/** A place in the queue. It belongs to one session and serves one term. */
export interface Place {
  /** Path or key. No other place ever has it, unless the layout says otherwise. */
  readonly name: string;
  /** What the store numbers creations by (czxid, create revision): the token of the term. */
  readonly token: bigint;
  /** Opaque: which session it lives and dies with. */
  readonly session: unknown;
}

/** One request for a place in the queue. The guid finds it again when a reply was lost. */
export interface Entry {
  /** Unique for ever, `[A-Za-z0-9_-]{1,40}`. */
  readonly guid: string;
  readonly candidate: CandidateInfo;
}

export interface RecordReading {
  /** Undefined: nobody has written one yet, or `isForeign`. */
  readonly record: QueueRecord | undefined;
  readonly version: Version;
  /** Where the record would be stands something that is not ours, and that we must leave alone. */
  readonly isForeign?: boolean;
}

export type CommitResult =
  | { readonly outcome: 'ok'; readonly version: Version }
  /** The record has another version. */
  | { readonly outcome: 'conflict' }
  /** The place that was checked is not there (any more). */
  | { readonly outcome: 'gone' };

/** What was read, and the next change after it: none between the two is missed. */
export interface Watched<Value> {
  readonly value: Value;
  /** Resolves at the next change, or when it can no longer be told. Never rejects. */
  readonly changed: Promise<unknown>;
  cancel(): void;
}

/** A member of the queue as its own data describes it. */
export interface Member {
  readonly name: string;
  /** As `Place.token`. */
  readonly token: bigint;
  readonly candidate: CandidateInfo;
  /** False: it was not made by this library, so it knows nothing of our record and waits for nobody. */
  readonly isOurs: boolean;
}

/** What one proof has shown of the places it was asked for. */
export interface Presence {
  /** Were there when the store's quorum committed the proof. */
  readonly there: readonly Place[];
  /** Were not there. Of a place in neither list nothing was learnt. */
  readonly gone: readonly Place[];
}

export type SessionEvent =
  /** The store cannot be reached at the moment. */
  | 'suspended'
  /** It can be reached again: look again at everything. */
  | 'restored'
  /** The session is over and its places with it; later calls are made in another one. */
  | 'over';

/**
 * The session that all elections on one client share. One object for a client: those who share it
 * share their confirmations.
 */
export interface QueueSession {
  /**
   * Proves by one transaction which of these places were there when the store's quorum committed it: a
   * server that is cut off from it cannot answer. Tells of all of them, or of one at least that was
   * gone. Rejects when nothing was learnt.
   */
  confirm(places: readonly Place[], signal: AbortSignal): Promise<Presence>;
  /** True once the session of this place is known to be over, by whichever side's word or clock. */
  isOver(place: Place): boolean;
  /** True while the store cannot be reached. */
  readonly isSuspended: boolean;
  /** True when no session will come any more, because the client was closed. */
  readonly isEnded?: boolean;
  /** @returns stops telling */
  onEvent(listener: (event: SessionEvent) => void): () => void;
  /** How many places one proof can take. */
  readonly maxPlaces: number;
}

/**
 * One election. Every method makes one attempt; a rejection means that the outcome is unknown,
 * unless its error is one that waiting cannot cure.
 */
export interface QueueStore {
  readonly session: QueueSession;
  /**
   * A record names places as its writer spells them, and clients may spell one place differently (a
   * chroot, a namespace). @returns what `Place.name` and `list` call that place here. Ask
   * `leaderPlaceIn` and `lastPlaceIn` instead of comparing what stands in a record.
   */
  nameHere(recorded: string): string;
  /**
   * Others than this library may be members, who do not wait and write no record. Then any gap
   * between the place in the record and ours counts as an unclean end.
   */
  readonly isMixed: boolean;
  /**
   * Enters behind all who are in the queue, or finds the place that an earlier attempt with this
   * guid has made, if it belongs to the present session.
   */
  enter(entry: Entry, signal: AbortSignal): Promise<Place>;
  /**
   * Gives up what `enter` made, or may have made. What is not there is success, and the store sees to
   * it that an `enter` without an answer which lands later is given up too.
   */
  leave(entry: Entry, place: Place | undefined, signal: AbortSignal): Promise<void>;
  /** The names of all places in order, the leader first. Shows at least what this session did. */
  list(signal: AbortSignal): Promise<readonly string[]>;
  read(signal: AbortSignal): Promise<RecordReading>;
  /**
   * Both in one round trip, the names **not older** than the record: a leader that the record names
   * and the list does not is gone for good.
   */
  look(
    signal: AbortSignal,
  ): Promise<{ readonly reading: RecordReading; readonly names: readonly string[] }>;
  /** Reads after it show what was committed before it, also by others. */
  sync(signal: AbortSignal): Promise<void>;
  /** Atomic: checks that `place` is there, and replaces the record if it has this version. */
  commit(
    place: Place,
    record: QueueRecord,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult>;
  /** Atomic: as `commit`, and deletes the place. Without `record` it only deletes the place. */
  release(
    place: Place,
    record: QueueRecord | undefined,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult>;
  /**
   * What operators do. Atomic: replaces the record if it has this version, sets or clears the mark of the
   * end if that is asked for (`conflict` or `gone` if that was done already), and deletes the places `remove`, if all of them and
   * `present` are there (`gone` otherwise).
   */
  amend(change: Amendment, signal: AbortSignal): Promise<CommitResult>;
  /** Deletes a place by its name, whosever it is. What is not there is success. */
  remove(name: string, signal: AbortSignal): Promise<void>;
  /** Those in the queue, in order, the first `most` or all. Who leaves meanwhile is left out. */
  members(signal: AbortSignal, most?: number): Promise<readonly Member[]>;
  /** Whether a place is there. */
  watchPlace(name: string, signal: AbortSignal): Promise<Watched<boolean>>;
  watchRecord(signal: AbortSignal): Promise<Watched<RecordReading>>;
  /** The names of all places in order. Wakes everybody who watches: for observers of mixed queues. */
  watchList(signal: AbortSignal): Promise<Watched<readonly string[]>>;
  /** Only where `isMixed`: nobody can have led between the place of that name and `place`. */
  directlyFollows?(place: Place, previous: string): boolean;
  /**
   * Only where names come again, so that giving up a place does not keep an announcement from landing:
   * from now on none lands that was sent before. @returns false: the record has another version
   */
  outdate?(version: Version, signal: AbortSignal): Promise<boolean>;
  /** Only where names come again: whether the place of that name is still the one that was made. */
  isSame?(place: Place, signal: AbortSignal): Promise<boolean>;
  /** What marks the end of the election in this layout, besides the record. */
  readonly endMark?: EndMark;
  /** Whatever must be there before candidates can enter. */
  init(signal: AbortSignal): Promise<void>;
  close?(): Promise<void>;
}

/** A change that an operator makes. */
export interface Amendment {
  readonly record: QueueRecord;
  readonly version: Version;
  readonly present?: string;
  readonly remove?: readonly string[];
  /** Sets the mark of the end as well, or takes it back. */
  readonly endMark?: 'set' | 'clear';
}

/** GoLea's `DONE` node: tells members that know nothing of our record. */
export interface EndMark {
  isSet(signal: AbortSignal): Promise<boolean>;
  /**
   * `changed` resolves with true when it was set meanwhile, also when it is gone again by now; with
   * false when it was taken back, or can no longer be told of.
   */
  watch(signal: AbortSignal): Promise<Watched<boolean> & { readonly changed: Promise<boolean> }>;
  set(signal: AbortSignal): Promise<void>;
  clear(signal: AbortSignal): Promise<void>;
}
