import type { CandidateInfo } from '../base/candidate.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import type { EndReason } from '../base/reasons.ts';

/**
 * One term of the past, as the record remembers it. Each time is by the wall clock of the process
 * that wrote it. `JSON.stringify` writes the token as a decimal text.
 */
export interface TermSummary {
  /** The token of the term. */
  readonly token: bigint;
  /** The id of the candidate that led. */
  readonly id: string;
  /** The incarnation of the candidate that led. */
  readonly incarnation: string;
  /** When the term began, in ms since 1970. */
  readonly fromUnixMs: number;
  /** For an unclean end: the time at which the successor took over. */
  readonly toUnixMs: number;
  /** `unclean`: the leader never said that it stopped. */
  readonly why: EndReason | 'unclean';
}

/** A leader whose end was never confirmed, and that no later leader has fenced yet. */
export interface UncleanLeader extends CandidateInfo {
  /** The token of the term that ended unclean. */
  readonly token: bigint;
  /** The last takeover that could not fence it. */
  readonly failure?: FenceFailure;
}

/** A takeover that could not fence a leader. */
export interface FenceFailure {
  /** The id of the candidate that tried. */
  readonly by: string;
  /** The reason that its hook has told by a `TakeoverFailedError`. */
  readonly why?: string;
}

/** Of `why` the record keeps so many characters. */
export const longestFenceFailure = 200;

/** How many past terms a record keeps. */
export const historyLimit = 50;
/**
 * How many unfenced leaders a record keeps. After more failed takeovers in a row, the oldest are
 * dropped.
 */
export const unfencedLimit = 20;
/** How many drained candidates a record keeps. */
export const drainLimit = 100;

/** A candidate that an operator keeps out. */
export interface Drain {
  /** The id of the candidate. */
  readonly id: string;
  /** By the reader's wall clock. Safety does not depend on it. */
  readonly untilUnixMs: number;
}

/** An operator's request to the leader. It stays in the record until the leader has gone. */
export type LeaderRequest =
  | { readonly kind: 'vacate'; readonly nonce: string }
  | { readonly kind: 'transfer'; readonly to: string; readonly nonce: string };

/**
 * After a release: the candidate that may take the seat first. A reservation is over when a
 * candidate has seen it for `reserveMs` by its own clock. It is also over when the candidate's wall
 * clock is past `untilUnixMs`, so that short-lived candidates can wait it out too. Safety does not
 * depend on it: no process believes that it leads.
 */
export interface Reservation {
  /** The id of a candidate. Undefined: no candidate may take the seat. */
  readonly for: string | undefined;
  /** How long the reservation lasts, in ms, by each candidate's own observation. */
  readonly reserveMs: number;
  /** The end of the reservation by a wall clock, in ms since 1970. */
  readonly untilUnixMs: number;
}

/**
 * The seat stays closed until one of two times is over. One is `untilUnixMs`, by the candidate's
 * wall clock. The other is `ms`, by what the candidate itself has observed. Safety does not depend
 * on it: no process believes that it leads.
 */
export interface Held {
  readonly ms: number;
  readonly untilUnixMs: number;
}

/**
 * One process that acts for a term, or a group or session of processes. The description lets
 * another process on the same machine prove it dead. Only the store that made it can read it.
 */
export type Actor = Readonly<Record<string, string | number>>;

/** A seat that is held. */
export interface Holding {
  readonly candidate: CandidateInfo;
  readonly electedAtUnixMs: number;
  /** An operator took the seat away. No confirmation counts any more, but belief must run out. */
  readonly revoked: boolean;
  readonly request: LeaderRequest | undefined;
  /**
   * The work is done and the seat is only held. Until then no candidate takes it, even if the
   * holder dies.
   */
  readonly held?: Held | undefined;
  /** False: the work of the term has not said that it is ready. Left out: it need not say so. */
  readonly ready?: false | undefined;
}

/** The facts that a leader publishes about itself. */
export interface Published {
  readonly addresses: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly held?: Held | undefined;
  readonly ready?: false | undefined;
}

/** The fields of a holding that say what its leader publishes. */
export function published(
  candidate: CandidateInfo,
  { addresses, metadata, held, ready }: Published,
): Pick<Holding, 'candidate' | 'held' | 'ready'> {
  return { candidate: { ...candidate, addresses, metadata }, held, ready };
}

/** The record of an election, whatever mechanism decides it. `token` never falls. */
export interface ElectionRecord<Seat extends Holding = Holding> {
  readonly election: string;
  /** The token of the term that is held, or was held last. */
  readonly token: bigint;
  /**
   * Chosen by the candidate that wrote the record. Operators keep it. It tells the outcome of an
   * attempt.
   */
  readonly nonce: string;
  readonly ended: boolean;
  /** The present leader, or the last one when it never said that it stopped. */
  readonly holding: Seat | undefined;
  readonly reservation: Reservation | undefined;
  /** Leaders that ended unclean and that no later leader has fenced. */
  readonly unfenced: readonly UncleanLeader[];
  readonly drains: readonly Drain[];
  readonly history: readonly TermSummary[];
  /** Of how many seats this is one. Left out: the election has one. */
  readonly seats?: number | undefined;
}

/** The terms in a record of either mechanism. */
export interface Terms {
  readonly token: bigint;
  readonly history: readonly TermSummary[];
  readonly holder: (CandidateInfo & { readonly announced: boolean }) | undefined;
}

/**
 * The terms of a record. A queue's record does not say whether its term is announced: it names a
 * leader only once that one is announced.
 */
export function termsOf(
  record: ElectionRecord<Holding & { readonly announced?: boolean }> | undefined,
): Terms {
  if (record === undefined) return { token: 0n, history: [], holder: undefined };
  const { token, history, holding } = record;
  const holder = holding && { ...holding.candidate, announced: holding.announced ?? true };
  return { token, history, holder };
}

/**
 * The last term that led and that began after `before` was read, whether it is over or not. A
 * higher token alone is no proof of such a term: its write may have been taken back.
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

/** The drain that keeps candidate `id` out at `wallMs`. Undefined: there is none, or it is over. */
export function drainOf(
  record: { readonly drains: readonly Drain[] } | undefined,
  id: string,
  wallMs: number,
): Drain | undefined {
  return record?.drains.find((drain) => drain.id === id && drain.untilUnixMs > wallMs);
}

/** How long a drain stays in the record after it is over. */
const drainKeptMs = 86_400_000;

/**
 * The drains for the next record. The writer's clock may be ahead, and must not erase a drain that
 * still counts for all others. So a drain is dropped a day after it is over, or when there is no
 * room for it. Readers leave out those that are over.
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
 * An observer's knowledge of the election. `JSON.stringify` writes its token as a decimal text. A
 * copy such as `{ ...view }` has a bigint, which `JSON.stringify` refuses.
 */
export interface View {
  /**
   * - `led`: the record names a leader.
   * - `vacant`: no candidate leads, or the last leader cannot believe any more that it does.
   * - `unknown`: the store cannot be read.
   * - `ended`: the election was ended for everybody.
   */
  readonly state: 'led' | 'vacant' | 'unknown' | 'ended';
  /** The leader. Only while the state is `led`. */
  readonly leader?: CandidateInfo;
  /**
   * False: the leader still prepares its work, so send it nothing yet (`ready: 'manual'`). Only
   * while the state is `led`. A leader of another program counts as ready.
   */
  readonly ready?: boolean;
  /** The token of the term that leads, or led last. */
  readonly token?: bigint;
  /** By a wall clock: when the term began, or when this state was first seen. */
  readonly sinceUnixMs: number;
  /** Why the state is `unknown`. */
  readonly error?: Error;
}

/** True when an observer need not be told again: state, term and readiness are the same. */
export function sameView(a: View, b: View): boolean {
  return (
    a.state === b.state &&
    a.token === b.token &&
    a.ready === b.ready &&
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

/** The history with one more term. Beyond the limit the oldest is dropped. */
export function appendTerm(
  history: readonly TermSummary[],
  term: TermSummary,
): readonly TermSummary[] {
  return [...history, term].slice(-historyLimit);
}
