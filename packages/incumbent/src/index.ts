/** Leader election for Node.js: one API over the store you already run. Start at `createElection`. */
export type { FenceHook, TakeoverContext } from './campaign.ts';
export { type CandidateInfo, type CandidateOptions, selfAddresses } from './candidate.ts';
export type { Clock, Instant, Timer } from './clock.ts';
export type {
  ActorProcess,
  AdminRequest,
  AdminResult,
  Backend,
  ElectionBackend,
  Predecessor,
  Snapshot,
} from './contest.ts';
export { Countdown, type Deadline, deadlineAfter } from './deadline.ts';
export type { DiagnosticEvents } from './diagnostics.ts';
export { type Duration, formatDuration, parseDuration } from './duration.ts';
export { createElection, type Election } from './election.ts';
export {
  ClosedError,
  ElectionEndedError,
  ElectionError,
  type ElectionErrorCode,
  InvalidOptionError,
  InvalidTimingError,
  LeftBehindError,
  MisuseError,
  NotElectedError,
  NotLeadingError,
  OperationTimeoutError,
  RecordDamagedError,
  RecordTooNewError,
  RefusedError,
  StoreUnavailableError,
  StoreUnsuitableError,
  TakeoverFailedError,
  TermEndedError,
} from './errors.ts';
export type { HealthOptions } from './health.ts';
export type { LiftedHold } from './holds.ts';
export type { StoppableIterator } from './iterate.ts';
export { describeNotElected, type NotElectedReason } from './not-elected.ts';
export type {
  CampaignOnceOptions,
  CampaignOptions,
  ElectionOptions,
  LeadOptions,
} from './options.ts';
export { describeEnd, type EndReason, endReasons } from './reasons.ts';
export type { Drain, LeaderRequest, TermSummary, UncleanLeader, View } from './record.ts';
export type { CandidateStatus } from './status.ts';
export type { Proclamation, Term, TermOutcome, TermState } from './term.ts';
export {
  deriveTiming,
  resolveTiming,
  type Timing,
  type TimingLimits,
  type TimingOptions,
  timingViolations,
} from './timing.ts';
export type { Trouble } from './trouble.ts';
