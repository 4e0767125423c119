/** Leader election for Node.js: one API over the store you already run. Start at `createElection`. */

export { type CandidateInfo, type CandidateOptions, selfAddresses } from './base/candidate.ts';
export type { Clock, Instant, Timer } from './base/clock.ts';
export { Countdown, type Deadline, deadlineAfter } from './base/deadline.ts';
export { type Duration, formatDuration, parseDuration } from './base/duration.ts';
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
} from './base/errors.ts';
export type { StoppableIterator } from './base/iterate.ts';
export { describeNotElected, type NotElectedReason } from './base/not-elected.ts';
export { describeEnd, type EndReason, endReasons } from './base/reasons.ts';
export {
  deriveTiming,
  resolveTiming,
  type Timing,
  type TimingLimits,
  type TimingOptions,
  timingViolations,
} from './base/timing.ts';
export type { FenceHook, TakeoverContext } from './core/campaign-settings.ts';
export type {
  ActorProcess,
  AdminRequest,
  AdminResult,
  Backend,
  ElectionBackend,
  ElectionSummary,
  ListingOptions,
  Predecessor,
  Snapshot,
  SurveyOptions,
} from './core/contest.ts';
export type { DiagnosticEvents } from './core/diagnostics.ts';
export { createElection, type Election } from './core/election.ts';
export type { HealthOptions } from './core/health.ts';
export type { LiftedHold } from './core/holds.ts';
export type {
  CampaignOnceOptions,
  CampaignOptions,
  ElectionOptions,
  LeadOptions,
} from './core/options.ts';
export type { CandidateStatus } from './core/status.ts';
export type { Proclamation, Term, TermOutcome, TermState } from './core/term.ts';
export type { Trouble } from './core/trouble.ts';
export type {
  Drain,
  FenceFailure,
  LeaderRequest,
  TermSummary,
  UncleanLeader,
  View,
} from './record/record.ts';
