/**
 * The contract between a store with sessions and the queue. The store never interprets time, and
 * has no timer of its own.
 */
import type { CandidateInfo } from '../../base/candidate.ts';
import type { QueueRecord } from '../../record/queue-record.ts';

/** The version that the store compares. Opaque, and different after every write of the record. */
export type Version = string | number | bigint | undefined;

/** A place in the queue. It belongs to one session and serves one term. */
export interface Place {
  /** Path or key. No other place ever has it, unless the layout says otherwise. */
  readonly name: string;
  /**
   * The number that the store gives to each creation (czxid, create revision). It is the token
   * of the term.
   */
  readonly token: bigint;
  /** The session that the place lives and dies with. Opaque. */
  readonly session: unknown;
}

/** One request for a place in the queue. The guid finds it again when a reply was lost. */
export interface Entry {
  /** Unique for ever, `[A-Za-z0-9_-]{1,40}`. */
  readonly guid: string;
  readonly candidate: CandidateInfo;
}

/** By this the data of a place says that its candidate may be named as the successor. */
export interface SuccessorMark {
  /** The nonce of the record that names the place. Drawn for one connection to the store. */
  readonly nonce: string;
  /** H of the candidate, which its own successor waits out. */
  readonly beliefMs: number;
  /** D of the candidate: for people. */
  readonly leaseMs: number;
  /** As in the record: its work has not said yet that it is ready. */
  readonly ready: false | undefined;
}

/** The place behind a leader, as one reading shows it. */
export interface NextPlace {
  readonly name: string;
  /** As `Place.token`. */
  readonly token: bigint;
  readonly candidate: CandidateInfo;
  /** Undefined: its candidate knows nothing of successors, or does not want to be one. */
  readonly mark: SuccessorMark | undefined;
  /** Another one after each write of the place. */
  readonly version: number;
}

export interface RecordReading {
  /** Undefined: none was written yet, or `isForeign`. */
  readonly record: QueueRecord | undefined;
  readonly version: Version;
  /** Foreign data stands in the place of the record. We must leave it alone. */
  readonly isForeign?: boolean;
}

export type CommitResult =
  | { readonly outcome: 'ok'; readonly version: Version }
  /** The record has another version. */
  | { readonly outcome: 'conflict' }
  /** The place that was checked is not there (any more). */
  | { readonly outcome: 'gone' };

/** A value, and the next change after it. No change between the two is missed. */
export interface Watched<Value> {
  readonly value: Value;
  /** Resolves at the next change, or when a change can no longer be told. Never rejects. */
  readonly changed: Promise<unknown>;
  cancel(): void;
}

/** A member of the queue as its own data describes it. */
export interface Member {
  readonly name: string;
  /** As `Place.token`. */
  readonly token: bigint;
  readonly candidate: CandidateInfo;
  /**
   * False: another library made it. It knows nothing of our record, and waits for no predecessor.
   */
  readonly isOurs: boolean;
}

/** The answer of one proof about the places that it asked for. */
export interface Presence {
  /** These were there when the store's quorum committed the proof. */
  readonly there: readonly Place[];
  /** These were gone. Nothing was learnt of a place in neither list. */
  readonly gone: readonly Place[];
}

export type SessionEvent =
  /** The store cannot be reached at the moment. */
  | 'suspended'
  /** The store can be reached again: look again at everything. */
  | 'restored'
  /** The session is over, and its places with it. Later calls use another session. */
  | 'over';

/**
 * The session that all elections on one client share. There is one object for each client.
 * Elections that share it share their confirmations.
 */
export interface QueueSession {
  /**
   * Proves by one transaction which of these places were there when the store's quorum committed
   * it. A server that is cut off from the quorum cannot answer. Tells of all of them, or of at
   * least one that was gone. Rejects when nothing was learnt.
   */
  confirm(places: readonly Place[], signal: AbortSignal): Promise<Presence>;
  /** A proof for terms had no answer in time: the reason is that timeout. */
  leaveSilentServer?(reason: unknown): void;
  /**
   * True once the session of this place is known to be over, by the word or the clock
   * of either side.
   */
  isOver(place: Place): boolean;
  /** True while the store cannot be reached. */
  readonly isSuspended: boolean;
  /** True when the client was closed, so that no session will come any more. */
  readonly isEnded?: boolean;
  /** @returns a function that stops telling */
  onEvent(listener: (event: SessionEvent) => void): () => void;
  /** How many places one proof can take. */
  readonly maxPlaces: number;
}

/**
 * One election. Every method makes one attempt. A rejection means that the outcome is unknown,
 * unless its error is one that waiting cannot cure.
 */
export interface QueueStore {
  readonly session: QueueSession;
  /**
   * A record names places as its writer spells them, and clients may spell one place differently (a
   * chroot, a namespace). Do not compare names of a record: ask `leaderPlaceIn` and `lastPlaceIn`.
   * @returns the name that `Place.name` and `list` have for that place here
   */
  nameHere(recorded: string): string;
  /**
   * Others than this library may be members, which do not wait and write no record. Then any gap
   * between the place in the record and ours counts as an unclean end.
   */
  readonly isMixed: boolean;
  /**
   * Enters behind all members of the queue. Finds the place that an earlier attempt with this guid
   * has made, if it belongs to the present session.
   */
  enter(entry: Entry, signal: AbortSignal): Promise<Place>;
  /**
   * Gives up the place that `enter` made, or may have made. A place that is not there is a success.
   * The store also gives up a place from an `enter` that had no answer and lands later.
   */
  leave(entry: Entry, place: Place | undefined, signal: AbortSignal): Promise<void>;
  /**
   * The names of all places in order, the leader first. Shows at least all that this
   * session has done.
   */
  list(signal: AbortSignal): Promise<readonly string[]>;
  read(signal: AbortSignal): Promise<RecordReading>;
  /**
   * Reads both in one round trip, the names **not older** than the record. So a leader that the
   * record names and the list does not is gone for good.
   */
  look(
    signal: AbortSignal,
  ): Promise<{ readonly reading: RecordReading; readonly names: readonly string[] }>;
  /** Reads after it show all writes that were committed before it, also those of others. */
  sync(signal: AbortSignal): Promise<void>;
  /** Atomic. Checks that `place` is there, and replaces the record if it has this version. */
  commit(
    place: Place,
    record: QueueRecord,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult>;
  /** Atomic. As `commit`, and deletes the place. Without `record` it only deletes the place. */
  release(
    place: Place,
    record: QueueRecord | undefined,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult>;
  /**
   * For operators. Atomic. Replaces the record if it has this version, sets or clears the mark of
   * the end if asked to, and deletes the places `remove`. `conflict` or `gone`: the mark was set or
   * cleared already. `gone`: one of `remove` or `present` is not there.
   */
  amend(change: Amendment, signal: AbortSignal): Promise<CommitResult>;
  /**
   * Deletes a place by its name, whichever member made it. A place that is not there is a success.
   */
  remove(name: string, signal: AbortSignal): Promise<void>;
  /** The members in order: the first `most`, or all. A member that leaves meanwhile is left out. */
  members(signal: AbortSignal, most?: number): Promise<readonly Member[]>;
  /** Watches whether a place is there. */
  watchPlace(name: string, signal: AbortSignal): Promise<Watched<boolean>>;
  watchRecord(signal: AbortSignal): Promise<Watched<RecordReading>>;
  /**
   * The names of all places in order. Every change wakes all that watch. For observers
   * of mixed queues.
   */
  watchList(signal: AbortSignal): Promise<Watched<readonly string[]>>;
  /**
   * Only where `isMixed`. True when no member can have led between the place of that
   * name and `place`.
   */
  directlyFollows?(place: Place, previous: string): boolean;
  /**
   * Only where names come again. There, giving up a place does not keep an announcement from
   * landing. After this call, none lands that was sent before.
   * @returns false when the record has another version
   */
  outdate?(version: Version, signal: AbortSignal): Promise<boolean>;
  /**
   * Only where names come again. True when the place of that name is still the one that was made.
   */
  isSame?(place: Place, signal: AbortSignal): Promise<boolean>;
  /** Only where a leader can name its successor. */
  readonly succession?: Succession;
  /** Marks the end of the election in this layout, besides the record. */
  readonly endMark?: EndMark;
  /** Only with `endMark`: without a mark, a candidate that comes late would begin the election anew. */
  readonly removal?: Removal;
  /** Makes the things that must be there before candidates can enter. */
  init(signal: AbortSignal): Promise<void>;
  close?(): Promise<void>;
}

/** How a leader names the candidate behind it, and how that one agrees. */
export interface Succession {
  /** The place and its mark. Undefined: the place is gone. Every write of the place is a change. */
  watchNext(name: string, signal: AbortSignal): Promise<Watched<NextPlace | undefined>>;
  /**
   * Atomic. Replaces the record if it has this version, deletes `place`, and checks that `next` has
   * not been written since it was read. `unfit`: it has been, or is gone.
   */
  handOver(
    place: Place,
    next: NextPlace,
    change: Pick<Amendment, 'record' | 'version'>,
    signal: AbortSignal,
  ): Promise<CommitResult | { readonly outcome: 'unfit' }>;
  /**
   * Writes this mark into our place, unless another process has written there.
   * @param isOurs whether a nonce that is found there was drawn by the caller
   * @returns false when the place is gone, or another process has it as well
   */
  mark(
    place: Place,
    marked: Pick<Entry, 'candidate'> & { readonly mark: SuccessorMark },
    isOurs: (nonce: string) => boolean,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Atomic. Deletes the place if the record has this version. */
  withdraw(place: Place, version: Version, signal: AbortSignal): Promise<CommitResult>;
  /** Writes our place as it is, which wakes the candidate behind it. */
  touch(place: Place, entry: Entry, signal: AbortSignal): Promise<void>;
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

/** GoLea's `DONE` node. It tells members that know nothing of our record. */
export interface EndMark {
  isSet(signal: AbortSignal): Promise<boolean>;
  /**
   * `changed` resolves with true when the mark was set meanwhile, even if it is gone again by now.
   * It resolves with false when the mark was cleared, or can no longer be told of.
   */
  watch(signal: AbortSignal): Promise<Watched<boolean> & { readonly changed: Promise<boolean> }>;
  set(signal: AbortSignal): Promise<void>;
  clear(signal: AbortSignal): Promise<void>;
}

/** Deletes an election whose end is marked, and the mark with it. */
export interface Removal {
  /** Another one each time that the mark is set. Undefined: it is not set. */
  markId(signal: AbortSignal): Promise<bigint | undefined>;
  /** The children of the election that are neither places nor the mark. */
  strangers(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Atomic. `conflict`: the record has another version, a place or another child is there, or the
   * mark is not.
   */
  remove(version: Version, signal: AbortSignal): Promise<'removed' | 'conflict'>;
}
