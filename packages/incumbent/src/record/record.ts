import type { CandidateInfo } from '../base/candidate.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import type { EndReason } from '../base/reasons.ts';

/**
 * One term of the past, as the record remembers it. Times are the wall clocks of those who wrote.
 * `JSON.stringify` writes its token as a decimal text.
 */
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

/** What an operator asks of the leader. It stays in the record until the leader has gone. */
export type LeaderRequest =
  | { readonly kind: 'vacate'; readonly nonce: string }
  | { readonly kind: 'transfer'; readonly to: string; readonly nonce: string };

/**
 * After a release: who may take the seat first. Over when a candidate has seen it for `reserveMs` by
 * its own clock, or when its wall clock is past `untilUnixMs`, so that candidates that do not live
 * long can wait it out too. Not a matter of safety: nobody believes.
 */
export interface Reservation {
  /** Candidate id; undefined: nobody. */
  readonly for: string | undefined;
  readonly reserveMs: number;
  readonly untilUnixMs: number;
}

/**
 * Nobody takes the seat before `untilUnixMs` by their wall clock, or for `ms` by their own
 * observation, whichever is over first. Not a matter of safety: nobody believes.
 */
export interface Held {
  readonly ms: number;
  readonly untilUnixMs: number;
}

/**
 * One process, or a group or session of them, that acts for a term, described so that another process on
 * the same machine can prove it dead. Opaque to everything but the store that made it.
 */
export type Actor = Readonly<Record<string, string | number>>;

/** A seat that is held. */
export interface Holding {
  readonly candidate: CandidateInfo;
  readonly electedAtUnixMs: number;
  /** An operator took the seat away: no confirmation counts any more, but belief must run out. */
  readonly revoked: boolean;
  readonly request: LeaderRequest | undefined;
  /** The work is done and the seat is only held: nobody takes it before then, even if the holder dies. */
  readonly held?: Held | undefined;
}

/** What is on record of an election, whatever it is decided by. `token` never falls. */
export interface ElectionRecord<Seat extends Holding = Holding> {
  readonly election: string;
  /** Of the term that is held, or was held last. */
  readonly token: bigint;
  /** Chosen by whoever wrote as a candidate; operators keep it. Tells an attempt's outcome. */
  readonly nonce: string;
  readonly ended: boolean;
  /** Who leads, or led and never said that it stopped. */
  readonly holding: Seat | undefined;
  readonly reservation: Reservation | undefined;
  /** Leaders that ended unclean and that no later leader has fenced. */
  readonly unfenced: readonly UncleanLeader[];
  readonly drains: readonly Drain[];
  readonly history: readonly TermSummary[];
}

/** What a record of either mechanism says of its terms. */
export interface Terms {
  readonly token: bigint;
  readonly history: readonly TermSummary[];
  readonly holder: (CandidateInfo & { readonly announced: boolean }) | undefined;
}

/** A term of a queue is on record once it is announced, and so its record does not say that it is. */
export function termsOf(
  record: ElectionRecord<Holding & { readonly announced?: boolean }> | undefined,
): Terms {
  if (record === undefined) return { token: 0n, history: [], holder: undefined };
  const { token, history, holding } = record;
  const holder = holding && { ...holding.candidate, announced: holding.announced ?? true };
  return { token, history, holder };
}

/**
 * The last term that led and that began after `before` was read, whether it is over or not. A higher
 * token alone is no such term: it may be that of a write that was taken back.
 */
export function electedSince(before: Terms, now: Terms): NotElectedReason | undefined {
  const wasWaiting = now.token === before.token && before.holder?.announced === false;
  const isNew = now.token > before.token || wasWaiting;
  if (now.holder?.announced === true && isNew) {
    return { kind: 'led', id: now.holder.id, token: now.token, over: true };
  }
  const known = new Set(before.history.map(({ incarnation, token }) => `${token} ${incarnation}`));
  // A term that was not announced yet had not begun.
  if (before.holder?.announced) known.add(`${before.token} ${before.holder.incarnation}`);
  const last = now.history.findLast(
    ({ incarnation, token }) => !known.has(`${token} ${incarnation}`),
  );
  return last && { kind: 'led', id: last.id, token: last.token, over: true };
}

/** What keeps candidate `id` out by now; undefined: nothing, or nothing any more. */
export function drainOf(
  record: { readonly drains: readonly Drain[] } | undefined,
  id: string,
  wallMs: number,
): Drain | undefined {
  return record?.drains.find((drain) => drain.id === id && drain.untilUnixMs > wallMs);
}

/** A drain stays in the record for so long after it is over. */
const drainKeptMs = 86_400_000;

/**
 * The drains for the next record. Whoever writes it may have a clock that is ahead, and must not erase
 * what still counts for all others: so a drain is dropped a day after it is over, or when there is no
 * room for it. Whoever reads leaves out those that are over.
 * @param room for how many more there must be room
 */
export function keptDrains(
  drains: readonly Drain[],
  wallMs: number,
  room: 0 | 1 = 0,
): readonly Drain[] {
  const kept = drains.filter(({ untilUnixMs }) => untilUnixMs + drainKeptMs > wallMs);
  const over = kept
    .filter(({ untilUnixMs }) => untilUnixMs <= wallMs)
    .sort((a, b) => a.untilUnixMs - b.untilUnixMs);
  const dropped = new Set(over.slice(0, Math.max(0, kept.length + room - drainLimit)));
  return kept.filter((drain) => !dropped.has(drain)).slice(-drainLimit);
}

/**
 * What an observer knows. `JSON.stringify` writes its token as a decimal text; a copy such as
 * `{ ...view }` has a bigint, which `JSON.stringify` refuses.
 */
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
