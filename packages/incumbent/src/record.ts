import type { CandidateInfo } from './candidate.ts';
import type { EndReason } from './reasons.ts';

/** One term of the past, as the record remembers it. Times are the wall clocks of those who wrote. */
export interface TermSummary {
  readonly token: bigint;
  readonly id: string;
  readonly incarnation: string;
  readonly fromUnixMs: number;
  /** For an unclean end: when the successor took over. */
  readonly toUnixMs: number;
  /** `unclean`: the leader never said that it stopped. */
  readonly why: EndReason | 'unclean';
}

/** A leader whose end nobody confirmed, and whom nobody has fenced yet. */
export interface UncleanLeader extends CandidateInfo {
  readonly token: bigint;
}

/** How many past terms a record keeps. */
export const historyLimit = 50;
/** How many unfenced leaders a record keeps; more than this many failed takeovers in a row drop the oldest. */
export const unfencedLimit = 20;
/** How many drained candidates a record keeps. */
export const drainLimit = 100;

/** A candidate that is to stay out. */
export interface Drain {
  readonly id: string;
  /** By the wall clock of whoever reads it: not a matter of safety. */
  readonly untilUnixMs: number;
}

/** The drains that still count, for the next record. */
export function currentDrains(drains: readonly Drain[], wallMs: number): readonly Drain[] {
  return drains.filter(({ untilUnixMs }) => untilUnixMs > wallMs).slice(-drainLimit);
}

/** What an operator asks of the leader. It stays in the record until the leader has gone. */
export type LeaderRequest =
  | { readonly kind: 'vacate'; readonly nonce: string }
  | { readonly kind: 'transfer'; readonly to: string; readonly nonce: string };

/** What an observer knows. */
export interface View {
  /**
   * `led`: the record names a leader. `vacant`: nobody leads, or the one who did cannot believe so
   * any more. `unknown`: the store cannot be read. `ended`: finished for everybody.
   */
  readonly state: 'led' | 'vacant' | 'unknown' | 'ended';
  readonly leader?: CandidateInfo;
  /** Token of the term that leads, or led last. */
  readonly token?: bigint;
  /** Wall clock: when the term began, or when this state was first seen. */
  readonly sinceUnixMs: number;
  /** Why the state is `unknown`. */
  readonly error?: Error;
}

/** True when an observer need not be told: the same state of the same term. */
export function sameView(a: View, b: View): boolean {
  return (
    a.state === b.state &&
    a.token === b.token &&
    a.leader?.incarnation === b.leader?.incarnation &&
    sameCandidate(a.leader, b.leader)
  );
}

function sameCandidate(a: CandidateInfo | undefined, b: CandidateInfo | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.addresses.join('\n') === b.addresses.join('\n') &&
    JSON.stringify(a.metadata) === JSON.stringify(b.metadata)
  );
}

/** The history with one more term, the oldest dropped beyond the limit. */
export function appendTerm(
  history: readonly TermSummary[],
  term: TermSummary,
): readonly TermSummary[] {
  return [...history, term].slice(-historyLimit);
}
