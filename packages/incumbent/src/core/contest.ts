/**
 * The contract between the core and a mechanism (lease, queue, lock), and the one between the
 * library and a backend. Time, renewal, reasons and the order of events are written once, in the
 * core. A contest reports wins and confirmations, and decides nothing else.
 */
import type { Belief } from '../base/belief.ts';
import type { CandidateInfo } from '../base/candidate.ts';
import type { Clock, Instant } from '../base/clock.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import type { EndReason } from '../base/reasons.ts';
import type { TimingLimits } from '../base/timing.ts';
import type {
  Actor,
  Drain,
  LeaderRequest,
  Published,
  TermSummary,
  UncleanLeader,
  View,
} from '../record/record.ts';
import type { LiftedHold } from './holds.ts';
import type { Leases } from './lease-store.ts';
import type { ActorProcess, Scope } from './scope.ts';

export type { ActorProcess, Scope } from './scope.ts';

/** The state that the holder of a seat wants its record to show. */
export interface SeatState extends Published {
  /** False while the predecessor is being fenced. No candidate leads yet. */
  readonly announced: boolean;
  /**
   * All processes that act for this term. Null: the list is not complete (yet), so no death can be
   * proved.
   */
  readonly actors: readonly Actor[] | null;
}

export type Confirmation =
  | {
      /** The seat was ours at some time after `sentAt`. */
      readonly outcome: 'confirmed';
      /** Both clocks, read before the request that proves it was sent. */
      readonly sentAt: Instant;
      /** The state that the record is now known to show. */
      readonly state: SeatState;
    }
  /** Nothing was learnt: the belief is not extended, and the seat is not lost. Try again. */
  | { readonly outcome: 'unresolved' }
  | {
      readonly outcome: 'lost';
      readonly reason: EndReason;
      /**
       * The next leader may be a program that does not wait for our belief. So belief must end at
       * once, whatever the reason.
       */
      readonly endsBelief?: boolean;
    };

/** Receives what the mechanism finds in the record besides the seat. */
export interface SeatEvents {
  /** An operator asks for something. Called at every confirmation while the request stands. */
  onRequest(request: LeaderRequest): void;
  /** This candidate is to stay out until then. */
  onDrained(untilUnixMs: number): void;
  /** The election was ended for everybody. */
  onElectionEnded(): void;
  /** A hint that the record has changed: confirm soon. */
  onHint(): void;
  /** The store cannot be reached: the term is uncertain until it is confirmed again. */
  onUncertain(): void;
  /** The store cannot be reached, and this backend wants the term to end then, in order. */
  onDisconnected(): void;
  /** It is certain that the seat is not ours any more. */
  onLost(reason: EndReason): void;
}

/** A seat that was won. One seat serves one term. */
export interface Seat<Guard> {
  /** Strictly greater than the token of every earlier term of this election. */
  readonly token: bigint;
  readonly guard: Guard;
  /** Both clocks, read before the request that won was sent. */
  readonly sentAt: Instant;
  /** Counts from `sentAt`. It has looked at the clocks while the seat was being won. */
  readonly belief: Belief;
  /** The state that the record showed at the win. */
  readonly state: SeatState;
  /** The leader before, if there was one. `clean` when its end was confirmed. */
  readonly predecessor: Predecessor | undefined;
  /** The leaders to fence before this term may be announced. Empty when the state was announced. */
  readonly unfenced: readonly UncleanLeader[];
  /** How long this term must wait before it may be announced. In a queue, a successor waits. */
  readonly waitBeforeAnnounceMs: number;

  /** Its number, where the election has several. */
  readonly number?: number;

  /** From now on the mechanism reports to `events`. */
  attach(events: SeatEvents): void;
  /**
   * One attempt to confirm that the seat is ours, and to make the record show `state`. Never called
   * while an earlier call is pending. Rejects when the outcome is unknown, and when `signal`
   * aborts.
   */
  confirm(state: SeatState, signal: AbortSignal): Promise<Confirmation>;
  /**
   * Gives the seat back as clean. Called after belief has ended. Never touches a successor.
   * @returns false when the seat was not ours any more
   */
  release(end: SeatEnd, signal: AbortSignal): Promise<boolean>;
  /** Belief has ended but the work has not. Leaves the seat to run out, as unclean. */
  abandon(signal: AbortSignal): Promise<void>;
}

/** The leader before a term. */
export interface Predecessor extends CandidateInfo {
  /** The token of its last term. */
  readonly token: bigint;
  /** False when the end of that term was never confirmed. */
  readonly clean: boolean;
}

/** How a term ended, for the record. */
export interface SeatEnd {
  readonly reason: EndReason;
  /** False: the term was stopped before it began, so the record must not say that it has led. */
  readonly hasLed: boolean;
  readonly fromUnixMs: number;
  readonly toUnixMs: number;
  /** The leaders that the next leader still has to fence. */
  readonly unfenced: readonly UncleanLeader[];
  /** Only this candidate may take the seat for `reserveMs`. Undefined: no candidate may. */
  readonly reservedFor?: string;
  readonly reserveMs?: number;
}

/** The place of a candidate in a queue. */
export interface QueuePosition {
  /** The name of its own place. */
  readonly place: string;
  /** The name of the place before it. Undefined for the first one. */
  readonly following: string | undefined;
}

/** A write of the record by which a candidate takes its seat, or confirms it. */
export interface SeatWrite {
  readonly token: bigint;
  readonly nonce: string;
  /** The number of the seat, where the election has several. */
  readonly seat?: number;
}

/** The candidate, as a contest asks and tells it during a campaign. */
export interface Candidacy {
  /**
   * The state that the record is to show at the win.
   * @param unfenced the leaders that would have to be fenced
   * @param self this process as an actor, where the store can prove a death
   */
  stateAtWin(unfenced: readonly UncleanLeader[], self?: Actor): SeatState;
  /** The candidate's place in a queue, and the reason why it waits there. */
  onQueuePosition(position: QueuePosition, why: NotElectedReason | undefined): void;
  /**
   * Why the candidate cannot have the seat. Told at every look that finds it so. The last one
   * counts.
   */
  onWaiting(why: NotElectedReason): void;
  /** Told before each such write is sent: afterwards it may have landed, whatever we hear. */
  onWrite?(write: SeatWrite): void;
}

/**
 * How long a candidate waits.
 *
 * - `wait`: for the seat, for as long as it takes.
 * - `settle`: not for another candidate, but until a leader that the store may have forgotten
 *   cannot believe any more.
 * - `none`: not at all.
 */
export type WaitMode = 'wait' | 'settle' | 'none';

/** One candidate's part in an election. */
export interface Contest<Guard> {
  /** The candidate as it campaigns from now on. Each campaign has its own incarnation. */
  present(candidate: CandidateInfo): void;
  /** How long a candidate that gave its seat up stays out, in ms, so that others get a chance. */
  readonly standAsideMs: number;
  /**
   * Waits for the seat. Not called again before the last seat was released or abandoned.
   * @returns undefined when `waitMode` does not let it wait longer; `candidacy` was told why
   * @throws `signal.reason` when aborted
   * @throws ElectionEndedError
   * @throws errors that waiting cannot cure: a damaged or newer record, an unsuitable store, a
   * guard that cannot be made
   */
  campaign(
    candidacy: Candidacy,
    waitMode: WaitMode,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | undefined>;
  /** Describes a live process as an actor. Undefined where the store cannot prove a death. */
  describe(process: ActorProcess): Promise<Actor | undefined>;
}

/** One look at an election, for operators. */
export interface Snapshot {
  /** The election as an observer sees it. */
  readonly view: View;
  /** The past terms, the oldest first. At most 50. */
  readonly history: readonly TermSummary[];
  /** The candidates that an operator keeps out at present. */
  readonly drains: readonly Drain[];
  /**
   * Leaders that ended unclean and that no later leader has fenced. The next leader fences them
   * before it leads.
   */
  readonly unfenced: readonly UncleanLeader[];
  /** The operator's request that the leader has not met yet. */
  readonly request: LeaderRequest | undefined;
  /** D of the present record, in ms, where there is a lease. */
  readonly leaseMs: number | undefined;
  /**
   * For how much longer the record protects its leader if it is not renewed, in ms. The leader's own belief ends
   * before. Undefined without a leader, and where a session protects it. One look at a store that tells no
   * age sees the whole lease.
   */
  readonly leaseLeftMs?: number;
  /** True when the store can prove that the holder is dead. */
  readonly holderGone: boolean;
  /** Until then only `for` may take the seat. Without `for`, no candidate may. */
  readonly reservation?: { readonly for: string | undefined; readonly untilUnixMs: number };
  /** Why no candidate can be elected yet, where the store may have forgotten a leader. */
  readonly settling?: NotElectedReason;
  /** How many seats the election has. Undefined before its first term. */
  readonly seats?: number;
}

/** An operator's request, as it is handed to a mechanism. */
export type AdminRequest =
  | { readonly kind: 'vacate'; readonly force: boolean }
  | { readonly kind: 'transfer'; readonly to: string }
  | { readonly kind: 'drain'; readonly id: string; readonly untilUnixMs: number }
  | { readonly kind: 'end' }
  | { readonly kind: 'reopen' };

/** The outcome of an operator's request. */
export interface AdminResult {
  /** False: there was nothing to do. For example, `vacate` found the seat vacant. */
  readonly changed: boolean;
  /** The election as it was when the request was written. */
  readonly view: View;
  /**
   * For `vacate` and `transfer` the election at the first look, which shows the term that was asked.
   * `view` may show what came after that term, as when the answer of a write was lost. For other
   * requests the same as `view`.
   */
  readonly asked: View;
  /**
   * A hold or reservation that `vacate` has lifted: it kept the seat closed although no work ran.
   */
  readonly lifted?: LiftedHold;
}

/** A leader that is dead, and what its witness knows of its seat. */
export interface DeadLeader {
  readonly id: string;
  readonly incarnation: string;
  readonly token: bigint;
  /**
   * The writes of the record that it may have sent in this term. The incarnation is no proof: a
   * copy of the process has the same one, and may still lead.
   */
  readonly nonces: readonly string[];
  /** The work is dead as well, so the term ended clean. False: the next leader has to fence it. */
  readonly hasWorkEnded: boolean;
}

/** One election on one backend. */
export interface ElectionBackend<Guard> {
  contest(candidate: CandidateInfo): Contest<Guard>;
  /**
   * The present view and then every change, until `signal` aborts. Trouble is a view, never an
   * error. The consumer may be slow: only the latest view matters.
   */
  observe(signal: AbortSignal): AsyncIterable<View>;
  inspect(signal: AbortSignal): Promise<Snapshot>;
  administer(request: AdminRequest, signal: AbortSignal): Promise<AdminResult>;
  /**
   * Ends the election, and deletes everything of it once no process can believe that it leads. Only
   * where that means something. Bounds itself.
   */
  readonly endAndRemove?: ((signal: AbortSignal) => Promise<AdminResult>) | undefined;
  /**
   * Deletes the places of all candidates, also the leader's. Only where programs of another make may
   * be candidates: they know no other request.
   */
  readonly deleteCandidates?: ((signal: AbortSignal) => Promise<AdminResult>) | undefined;
  /**
   * Gives back the seat of a leader whose death the caller has seen. One conditional write, which
   * touches nothing but that very term. Only where the mechanism has such a write.
   * @returns false when the record does not name that term (any more)
   */
  readonly giveBackFor?:
    | ((leader: DeadLeader, signal: AbortSignal) => Promise<boolean>)
    | undefined;
  readonly canListCandidates: boolean;
  /** The leader (first) and the waiting candidates. Only where the store can list them. */
  candidates(signal: AbortSignal): Promise<readonly CandidateInfo[]>;
  /** Makes the things that the store needs once, such as a table. */
  init(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** The options of `backend.elections`. */
export interface ListingOptions {
  /** Ends the listing: the iteration then rejects with the reason of this signal. */
  readonly signal?: AbortSignal;
  /** Default: the clock of the machine. Replace it in tests only. */
  readonly clock?: Clock;
}

/** The options of `backend.survey`. */
export interface SurveyOptions extends ListingOptions {
  /**
   * Keep one `new Map()`, and hand it in at every survey of the same backend. A store of leases
   * then notices the leaders that have not renewed since. One survey alone often cannot.
   */
  readonly memory?: Map<string, unknown>;
}

/** One election of a store, as one look found it. */
export interface ElectionSummary extends Snapshot {
  /** The name that `createElection` takes. */
  readonly name: string;
  /** The candidates that wait for the seat. Undefined: the store does not tell. */
  readonly waiting: readonly CandidateInfo[] | undefined;
}

/** How another process makes a backend: it calls an export of a module. */
export interface BackendMaker {
  /** The URL of the module. */
  readonly module: string;
  readonly name: string;
  /** As JSON keeps them. */
  readonly args: readonly unknown[];
}

/** A store, ready to hold elections. Made by `memory()`, `file(directory)` and the like. */
export interface Backend<Guard = unknown> {
  /** A word such as `file` or `postgres`. */
  readonly kind: string;
  /** Which store this is, for people, without secrets. */
  readonly description: string;
  /** Limits that this store sets on durations. */
  readonly limits?: TimingLimits;
  /** Only where the backend is made of nothing but plain values. */
  readonly madeBy?: BackendMaker;
  /**
   * Opens one election. Called once for every handle, and does no I/O.
   * @throws InvalidOptionError for a name that the store does not take
   */
  open(scope: Scope): ElectionBackend<Guard>;
  /** For what is built of many leases. Undefined for a store that cannot hold them. */
  readonly leases?: Leases | undefined;
  /**
   * The names of the elections that the store holds, in no order, and each of them once. It reads,
   * and never writes. An election that begins or is removed meanwhile may be named or not. One with
   * a damaged record is named. Things of other programs are left out.
   * @throws StoreUnsuitableError at once for a store that cannot tell. It says why
   */
  elections(options?: ListingOptions): AsyncIterable<string>;
  /**
   * As `elections`, with what one look tells of each. A record that cannot be read makes the view
   * of its election `unknown`, with the error. The others go on.
   * @throws StoreUnsuitableError at once for a store that cannot tell. It says why
   */
  survey(options?: SurveyOptions): AsyncIterable<ElectionSummary>;
}
