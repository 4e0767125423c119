/**
 * What a mechanism (the lease race, the queue) owes the campaign, and what a backend is to the
 * library. Time, renewal, reasons and the order of events are written once, in the core: a contest
 * says who won and what was confirmed, it decides nothing else.
 */
import type { Belief } from '../base/belief.ts';
import type { CandidateInfo } from '../base/candidate.ts';
import type { Clock, Instant } from '../base/clock.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import type { EndReason } from '../base/reasons.ts';
import type { Timing, TimingLimits } from '../base/timing.ts';
import type {
  Actor,
  Drain,
  Held,
  LeaderRequest,
  TermSummary,
  UncleanLeader,
  View,
} from '../record/record.ts';
import type { LiftedHold } from './holds.ts';

/** A process of this machine that acts for a term. */
export interface ActorProcess {
  readonly pid: number;
  /** Process group that must be empty as well before the actor counts as dead. */
  readonly group?: number;
  /**
   * Session of which no process may be alive, whatever its group. Counts on Linux only: elsewhere
   * nobody can see who is in it.
   */
  readonly session?: number;
}

/** What the holder of a seat wants its record to say. */
export interface SeatState {
  /** False while the predecessor is being fenced: nobody leads yet. */
  readonly announced: boolean;
  /** Those who act for this term, all of them; null: not (yet) complete, nothing can be proved. */
  readonly actors: readonly Actor[] | null;
  readonly addresses: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  /** The work is done and the seat is only held: so it stays even if the holder dies. */
  readonly held?: Held;
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
  /** Nothing was learnt: neither extended nor lost. Try again. */
  | { readonly outcome: 'unresolved' }
  | {
      readonly outcome: 'lost';
      readonly reason: EndReason;
      /** Nobody may wait for our belief: it is to end at once, whatever the reason. */
      readonly endsBelief?: boolean;
    };

/** What the mechanism found in the record besides the seat; delivered to `SeatEvents`. */
export interface SeatEvents {
  /** An operator asks for something. Called again at every confirmation while it stands. */
  onRequest(request: LeaderRequest): void;
  /** This candidate is to stay out until then. */
  onDrained(untilUnixMs: number): void;
  /** Somebody ended the election for everybody. */
  onElectionEnded(): void;
  /** A hint that the record changed: confirm soon. */
  onHint(): void;
  /** The store cannot be reached: the term is uncertain until it is confirmed again. */
  onUncertain(): void;
  /** The store cannot be reached, and the term is not to outlive that: it is to end in order. */
  onDisconnected(): void;
  /** The seat is not ours any more, for certain. */
  onLost(reason: EndReason): void;
}

/** A seat that was won. One seat serves one term. */
export interface Seat<Guard> {
  /** Strictly greater than that of every earlier term of this election. */
  readonly token: bigint;
  readonly guard: Guard;
  /** Both clocks, read before the request that won was sent. */
  readonly sentAt: Instant;
  /** Counts from `sentAt`, and has looked at the clocks while the seat was being won. */
  readonly belief: Belief;
  /** What the record showed when it was won. */
  readonly state: SeatState;
  /** Who led before, if anybody; `clean` when its end was confirmed. */
  readonly predecessor: Predecessor | undefined;
  /** Who must be fenced before this term may be announced. Empty when the state was announced. */
  readonly unfenced: readonly UncleanLeader[];
  /** How long this term must wait before it may be announced (the queue's waiting successor). */
  readonly waitBeforeAnnounceMs: number;

  /** From now on `events` is told what the mechanism notices. */
  attach(events: SeatEvents): void;
  /**
   * One attempt to confirm that the seat is ours, and to make the record show `state`. Never called
   * while an earlier call is pending. Rejects when the outcome is unknown (and `signal` aborted).
   */
  confirm(state: SeatState, signal: AbortSignal): Promise<Confirmation>;
  /**
   * Gives the seat back as clean. Belief has ended before it is called. Never touches a successor.
   * @returns false when the seat was not ours any more
   */
  release(end: SeatEnd, signal: AbortSignal): Promise<boolean>;
  /** Belief has ended but the work has not: leave the seat to run out, as unclean. */
  abandon(signal: AbortSignal): Promise<void>;
}

export interface Predecessor extends CandidateInfo {
  readonly token: bigint;
  readonly clean: boolean;
}

/** How a term ended, for the record. */
export interface SeatEnd {
  readonly reason: EndReason;
  /** False: it was stopped before it began, so nobody is to be told that it has led. */
  readonly hasLed: boolean;
  readonly fromUnixMs: number;
  readonly toUnixMs: number;
  /** Whoever still has to be fenced by the next leader. */
  readonly unfenced: readonly UncleanLeader[];
  /** Only this candidate may take the seat for `reserveMs`; undefined: nobody may. */
  readonly reservedFor?: string;
  readonly reserveMs?: number;
}

/** Where a candidate stands in a queue. */
export interface QueuePosition {
  /** The name of its own place. */
  readonly place: string;
  /** The name of the place before it; undefined for the first. */
  readonly following: string | undefined;
}

/** What a contest asks a candidate, and tells it, while it campaigns. */
export interface Candidacy {
  /**
   * What the record is to show at the win, given who would have to be fenced, and this process as an
   * actor where the store can prove a death.
   */
  stateAtWin(unfenced: readonly UncleanLeader[], self?: Actor): SeatState;
  /** Where the candidate stands, where there is a queue, and what it waits for there. */
  onQueuePosition(position: QueuePosition, why: NotElectedReason | undefined): void;
  /** Why the seat is not to be had. Told at every look that finds it so; the last one counts. */
  onWaiting(why: NotElectedReason): void;
}

/**
 * What a candidate waits for. `wait`: the seat, for as long as it takes. `settle`: not for another
 * candidate, but until a leader that the store may have forgotten cannot believe any more. `none`:
 * nothing.
 */
export type WaitMode = 'wait' | 'settle' | 'none';

/** One candidate's part in an election. */
export interface Contest<Guard> {
  /** As whom it campaigns from now on: each campaign has an incarnation of its own. */
  present(candidate: CandidateInfo): void;
  /** How long a candidate that gave its seat up stays out, so that others get a chance. */
  readonly standAsideMs: number;
  /**
   * Waits for the seat. Not called again before the last seat was released or abandoned.
   * @returns the seat; undefined when it waits no longer, by `waitMode`: `candidacy` was told why
   * @throws ElectionEndedError, errors that waiting cannot cure (damaged or newer record,
   * unsuitable store, a guard that cannot be made); `signal.reason` when aborted
   */
  campaign(
    candidacy: Candidacy,
    waitMode: WaitMode,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | undefined>;
  /** A live process as an actor; undefined where the store cannot prove a death. */
  describe(process: ActorProcess): Promise<Actor | undefined>;
}

/** What is known about an election at one moment, for operators. */
export interface Snapshot {
  readonly view: View;
  readonly history: readonly TermSummary[];
  readonly drains: readonly Drain[];
  readonly request: LeaderRequest | undefined;
  /** D of the present record, where there is a lease. */
  readonly leaseMs: number | undefined;
  /** True when the store can prove that the holder is dead. */
  readonly holderGone: boolean;
  /** Until when only `for` (undefined: nobody) may take the seat. */
  readonly reservation?: { readonly for: string | undefined; readonly untilUnixMs: number };
  /** Why nobody can be elected yet, where the store may have forgotten a leader. */
  readonly settling?: NotElectedReason;
}

export type AdminRequest =
  | { readonly kind: 'vacate'; readonly force: boolean }
  | { readonly kind: 'transfer'; readonly to: string }
  | { readonly kind: 'drain'; readonly id: string; readonly untilUnixMs: number }
  | { readonly kind: 'end' }
  | { readonly kind: 'reopen' };

/** What became of a request: what stood in the record when it was written. */
export interface AdminResult {
  /** False: there was nothing to do, such as vacating a vacant seat. */
  readonly changed: boolean;
  readonly view: View;
  /** What `vacate` has lifted: the seat was closed although nobody worked. */
  readonly lifted?: LiftedHold;
}

/** What a mechanism gets from the core. */
export interface Scope {
  readonly election: string;
  readonly clock: Clock;
  readonly timing: Timing;
  /** 0 ≤ x < 1, for jitter. */
  readonly random: () => number;
  /** Unique for ever: nonces. */
  readonly uniqueId: () => string;
  /** Trouble that nobody waits for; goes to diagnostics. */
  readonly onTrouble: (what: string, error: unknown) => void;
  /** Whether an operation of the store was answered: a store may be away without anybody's waiting. */
  readonly onAnswer?: (isAnswered: boolean) => void;
  /** True: a store that lacks what `init` makes makes it at its first use. */
  readonly makesMissing?: boolean;
}

/** One election on one backend. */
export interface ElectionBackend<Guard> {
  contest(candidate: CandidateInfo): Contest<Guard>;
  /**
   * The present view and then every change, until `signal` aborts; trouble is a view and not a
   * throw. The consumer may be slow: only the latest view matters.
   */
  observe(signal: AbortSignal): AsyncIterable<View>;
  inspect(signal: AbortSignal): Promise<Snapshot>;
  administer(request: AdminRequest, signal: AbortSignal): Promise<AdminResult>;
  readonly canListCandidates: boolean;
  /** Who leads (first) and who waits; only where the store can list them. */
  candidates(signal: AbortSignal): Promise<readonly CandidateInfo[]>;
  /** Whatever the store needs once. */
  init(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** A store, ready to hold elections. Made by `memory()`, `file(directory)` and the like. */
export interface Backend<Guard = unknown> {
  /** `file`, `postgres`, … */
  readonly kind: string;
  /** For people: which store this is, without secrets. */
  readonly description: string;
  readonly limits?: TimingLimits;
  open(scope: Scope): ElectionBackend<Guard>;
}
