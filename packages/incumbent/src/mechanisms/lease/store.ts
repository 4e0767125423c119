import type { CandidateInfo } from '../../base/candidate.ts';
import type { ActorProcess } from '../../core/contest.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import type { Actor } from '../../record/record.ts';

/** Says which state of the record a reader saw. Equal (`===`) means the same state. */
export type Version = string | number | bigint;

export interface Reading {
  /** Undefined: there is no record (yet). */
  readonly record: LeaseRecord | undefined;
  readonly version: Version;
  /**
   * How long ago, by the *store's* own clock, this version was written. Only from a store that
   * declares `clockStepMs`.
   */
  readonly ageMs?: number;
  /**
   * From a store that forgets: says since when it has not. It changes whenever the store may have lost
   * what it had confirmed, such as when a server was started again, a copy took over, or a record
   * turns out to be missing. A `swap` on a version that was read in an earlier life conflicts.
   */
  readonly life?: string;
  /** How long ago that life began, by the store's own clock. Only with `clockStepMs`. */
  readonly lifeAgeMs?: number;
}

export type SwapResult =
  | { readonly outcome: 'ok'; readonly version: Version }
  | { readonly outcome: 'conflict' };

/**
 * What a store owes the lease race: one record per election, read and replaced as a whole. It never
 * interprets time, has no timer and retries nothing. Made anew for every handle on an election.
 */
export interface LeaseStore {
  /**
   * The newest record that a completed `swap` wrote (linearizable).
   * Rejects when the store cannot be read, and when `signal` has aborted; RecordDamagedError and RecordTooNewError for what is
   * not ours to read.
   */
  read(signal: AbortSignal): Promise<Reading>;
  /**
   * Replaces the record if and only if its version is still `expected`, atomically and durably.
   * `conflict`: certainly not applied *by this attempt as far as the store can tell* (a retry inside
   * a client library may have applied it before: the race reads back). A rejection means *unknown*:
   * it may have been applied, or may still be.
   */
  swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult>;
  /**
   * Calls `onHint` soon after a change, if it can; hints may be missing, late or spurious. A store
   * that is told what the record has become may pass it on: then nobody reads for it. It may be old,
   * but not older than what it passed on before.
   * @returns a function that ends it
   */
  watch?(onHint: (reading?: Reading) => void): () => void;
  /**
   * True while `watch` tells of every change that somebody waits for: a win, a release, a request, an
   * end, but not every confirmation. Then those who wait read once per lease, besides hints.
   */
  readonly hintsWork?: boolean;
  /**
   * The store may lose what it has confirmed, such as one that keeps it in memory only: no record is
   * then no vacant seat, and an old record may have come back, for whoever led may still believe. So
   * nobody attempts before the present `Reading.life` was there for one lease. Without lives the same
   * is done for a missing record only; after every loss "no record" must then have another version
   * than ever before, or a candidate that slept through a whole term would not notice.
   */
  readonly forgets?: boolean;
  /** No term has this token or a lower one. For stores that forget, and resources that do not. */
  readonly tokenFloor?: bigint;
  /** Bound on how far the store's own clock may step forward (σ), in ms. Needed for `ageMs`. */
  readonly clockStepMs?: number;
  /** A live process of this machine as an actor, where a death can be proved. */
  describe?(process: ActorProcess): Promise<Actor>;
  /** True only if every actor is certainly dead and will not come back. Cheap: called often. */
  provesGone?(actors: readonly Actor[]): boolean;
  /**
   * Makes a waiting candidate visible until the returned function is called or it dies.
   * @param left aborts when the candidate waits no longer: what was not sent by then is not sent
   */
  enlist?(candidate: CandidateInfo, left: AbortSignal): Promise<() => Promise<void>>;
  /** Who is enlisted. */
  list?(signal: AbortSignal): Promise<readonly CandidateInfo[]>;
  /** Whatever the store needs once; a no-op when it was done. */
  init?(signal: AbortSignal): Promise<void>;
  close?(): Promise<void>;
}
