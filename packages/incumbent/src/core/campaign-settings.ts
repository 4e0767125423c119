import type { CandidateInfo } from '../base/candidate.ts';
import type { Deadline } from '../base/deadline.ts';
import type { UncleanLeader } from '../record/record.ts';
import type { HealthOptions } from './health.ts';
import type { CandidateStatus } from './status.ts';

/** What a fence hook is told. */
export interface TakeoverContext {
  readonly election: string;
  /** Token of the term that is about to begin: newer than anything `predecessor` ever had. */
  readonly token: bigint;
  /** Aborted when the belief of the new term is about to end: stop, the takeover has failed. */
  readonly signal: AbortSignal;
  /** Belief that is left for this hook, in ms; renewals prolong it meanwhile. */
  remaining(): number;
}

/** Makes sure that `predecessor`, whose end nobody confirmed, can do no more harm. */
export type FenceHook = (
  predecessor: UncleanLeader,
  context: TakeoverContext,
) => Promise<void> | void;

export interface CampaignSettings {
  readonly candidate: CandidateInfo;
  readonly onUnclean: readonly FenceHook[];
  readonly takeoverDelayMs: number;
  readonly hookTimeoutMs: number;
  readonly health: HealthOptions | undefined;
  readonly actors: 'self' | 'declared';
  readonly onBelief: ((deadline: Deadline | undefined) => unknown) | undefined;
  readonly onStatus: ((status: CandidateStatus) => void) | undefined;
}
