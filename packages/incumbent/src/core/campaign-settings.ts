import type { CandidateInfo } from '../base/candidate.ts';
import type { Deadline } from '../base/deadline.ts';
import type { UncleanLeader } from '../record/record.ts';
import type { HealthOptions } from './health.ts';
import type { SeatIdentity } from './seat-identity.ts';
import type { CandidateStatus } from './status.ts';

/** The second argument of a fence hook. */
export interface TakeoverContext {
  readonly election: string;
  /**
   * The token of the term that is about to begin. It is newer than any that `predecessor` ever had.
   */
  readonly token: bigint;
  /** The number of the seat, as `term.seat`. `predecessor` had the same. */
  readonly seat: number;
  /**
   * Aborted when the belief of the new term is about to end. Then stop: the takeover has failed.
   */
  readonly signal: AbortSignal;
  /** Belief that is left for this hook, in ms. Renewals prolong it meanwhile. */
  remaining(): number;
}

/**
 * Makes sure that `predecessor`, whose end was never confirmed, can do no more harm. The takeover
 * fails when the hook throws, or takes longer than `hookTimeout`. Then the seat is given up, and
 * the next winner runs the hooks again. A hook may therefore run several times for one predecessor.
 * A hook that throws a `TakeoverFailedError` tells operators why: the record shows its `why`.
 */
export type FenceHook = (
  predecessor: UncleanLeader,
  context: TakeoverContext,
) => Promise<void> | void;

/** The work says itself that it is ready, within this time. */
export interface Readiness {
  readonly timeoutMs: number;
}

export interface CampaignSettings {
  readonly candidate: CandidateInfo;
  readonly onUnclean: readonly FenceHook[];
  readonly takeoverDelayMs: number;
  readonly hookTimeoutMs: number;
  readonly health: HealthOptions | undefined;
  readonly actors: 'self' | 'declared';
  readonly readiness: Readiness | undefined;
  readonly onBelief: ((deadline: Deadline | undefined) => unknown) | undefined;
  readonly onSeat: ((seat: SeatIdentity | undefined) => void) | undefined;
  readonly onStatus: ((status: CandidateStatus) => void) | undefined;
}
