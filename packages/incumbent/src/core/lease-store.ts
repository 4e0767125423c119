/** The contract of a store of leases. It is part of `Backend`, so it stands in the core. */
import type { CandidateInfo } from '../base/candidate.ts';
import type { LeaseRecord } from '../record/lease-record.ts';
import type { Actor } from '../record/record.ts';
import type { ActorProcess, Scope } from './scope.ts';

/** Says which state of the record a reader saw. Equal (`===`) versions mean the same state. */
export type Version = string | number | bigint;

/** One state of a record, as a read found it. */
export interface Reading {
  /** Undefined: there is no record (yet). */
  readonly record: LeaseRecord | undefined;
  /** Identifies this state for a `swap`. */
  readonly version: Version;
  /**
   * How long ago, by the *store's* own clock, this version was written. Only from a store that
   * declares `clockStepMs`.
   */
  readonly ageMs?: number;
  /**
   * From a store that forgets: names the period in which it has forgotten nothing. It changes
   * whenever the store may have lost something that it had confirmed. A server was started again, a
   * copy took over, or a record turns out to be missing. A `swap` on a version that was read in an
   * earlier life conflicts.
   */
  readonly life?: string;
  /** How long ago that life began, by the store's own clock. Only with `clockStepMs`. */
  readonly lifeAgeMs?: number;
}

/** The outcome of a `swap`. */
export type SwapResult =
  | { readonly outcome: 'ok'; readonly version: Version }
  | { readonly outcome: 'conflict' };

/**
 * The contract between a store and the lease race. One record per election is read and replaced as
 * a whole. The store never interprets time, has no timer and retries nothing. Every handle on an
 * election opens a store of its own.
 */
export interface LeaseStore {
  /**
   * The newest record that a completed `swap` wrote (linearizable). Rejects when the store cannot
   * be read, and when `signal` has aborted.
   * @throws RecordDamagedError when the data is no record of ours
   * @throws RecordTooNewError when a newer version wrote the record
   */
  read(signal: AbortSignal): Promise<Reading>;
  /**
   * Replaces the record if and only if its version is still `expected`, atomically and durably.
   *
   * `conflict` means that this attempt was certainly not applied, as far as the store can tell. A
   * retry inside a client library may have been applied before, so the race reads back. A rejection
   * means that the outcome is unknown: the write may have been applied, or may still be.
   */
  swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult>;
  /**
   * Calls `onHint` soon after a change, if it can. Hints may be missing, late or spurious. A store
   * that hears the new record with the change may pass it on, so that no candidate reads for it.
   * Such a record may be old, but never older than one that was passed on before.
   * @returns a function that ends the watch
   */
  watch?(onHint: (reading?: Reading) => void): () => void;
  /**
   * True while `watch` tells of every change that candidates wait for: a win, a release, a
   * request, an end. It need not tell of every confirmation. Waiting candidates then read once per
   * lease, besides hints.
   */
  readonly hintsWork?: boolean;
  /**
   * The store may lose a record that it has confirmed. One that keeps it only in memory is an
   * example. Then a missing record is no vacant seat, and an old record may have come back: the
   * last leader may still believe. So no candidate attempts before the present `Reading.life` was
   * there for one lease.
   *
   * A store without lives is waited for only while the record is missing. After every loss its "no
   * record" must then have another version than ever before. Otherwise a candidate that slept
   * through a whole term would not notice.
   */
  readonly forgets?: boolean;
  /** No term has this token or a lower one. For stores that forget, and resources that do not. */
  readonly tokenFloor?: bigint;
  /** Bound on how far the store's own clock may step forward (σ), in ms. Needed for `ageMs`. */
  readonly clockStepMs?: number;
  /** Describes a live process of this machine as an actor, where a death can be proved. */
  describe?(process: ActorProcess): Promise<Actor>;
  /**
   * True only if every actor is certainly dead and will not come back. Called often, so it
   * must be cheap.
   */
  provesGone?(actors: readonly Actor[]): boolean;
  /**
   * Makes a waiting candidate visible until the returned function is called, or the candidate dies.
   * @param left aborts when the candidate waits no longer. Calls that were not sent by then
   * are not sent
   */
  enlist?(candidate: CandidateInfo, left: AbortSignal): Promise<() => Promise<void>>;
  /** The candidates that are enlisted. */
  list?(signal: AbortSignal): Promise<readonly CandidateInfo[]>;
  /** Makes the things that the store needs once. Does nothing when they are there. */
  init?(signal: AbortSignal): Promise<void>;
  close?(): Promise<void>;
}

/** The rules of a store by which a reading is judged. */
export type LeaseTraits = Pick<LeaseStore, 'clockStepMs' | 'provesGone' | 'forgets' | 'tokenFloor'>;

/** Leases by name, for what is built of many of them, such as shards. */
export interface Leases {
  /**
   * The lease of this name, `scope.election`. Nothing is touched yet.
   * @throws InvalidOptionError for a name that the store does not take
   */
  open(scope: Scope): LeaseStore;
  /**
   * The newest state of each of `stores`, in their order: by one request, where the store has one. Each
   * state is one that `read` could have given. A record that cannot be read leaves an error in its
   * place, and does not spoil the others.
   * @param stores all from `open` of this very object
   * @throws MisuseError for a store of another make, and what `read` throws when the store cannot be
   * read
   */
  readAll(
    stores: readonly LeaseStore[],
    signal: AbortSignal,
  ): Promise<readonly (Reading | Error)[]>;
  /**
   * The names of all shards in the store. It may name some that were never begun. Writes nothing.
   * Left out: this store cannot tell.
   */
  shards?(signal: AbortSignal): Promise<readonly string[]>;
}
