/**
 * Every change of a record, as a pure function: no I/O, no clock, nothing random. The caller
 * decides when a change may be written. Its content is decided here, for all mechanisms. The token
 * never falls: only a winner writes another one, and it is higher.
 */
import type { CandidateInfo } from '../base/candidate.ts';
import { RefusedError } from '../base/errors.ts';
import type { EndReason } from '../base/reasons.ts';
import type {
  Drain,
  ElectionRecord,
  Holding,
  LeaderRequest,
  TermSummary,
  UncleanLeader,
} from './record.ts';
import { appendTerm, drainLimit, keptDrains, unfencedLimit } from './record.ts';

/** The part of a new record that its writer brings along. */
export interface Writing {
  /** Never used before. */
  readonly nonce: string;
  readonly wallMs: number;
}

/** A lease names its holder before that one leads. A queue does not. */
interface Announced extends Holding {
  readonly announced?: boolean;
}

type AnyRecord = ElectionRecord<Announced>;

// --- after a leader whose end was never confirmed ---

/**
 * The leaders that the leader after `record` would have to fence.
 * @param wasOurs whether the winner wrote `record` itself: its own term in it is known to be over
 */
export function unfencedAfter(
  record: AnyRecord | undefined,
  wasOurs: boolean,
): readonly UncleanLeader[] {
  if (record === undefined) return [];
  const { holding, unfenced, token } = record;
  if (!hasLed(holding) || wasOurs) return unfenced;
  return [...unfenced, { ...holding.candidate, token }].slice(-unfencedLimit);
}

/** The history, with the term of a leader that never said that it stopped. */
export function historyAfter(
  record: AnyRecord | undefined,
  wallMs: number,
): readonly TermSummary[] {
  if (record === undefined) return [];
  const { holding, history, token } = record;
  if (!hasLed(holding)) return history;
  const { candidate, electedAtUnixMs: fromUnixMs } = holding;
  const { id, incarnation } = candidate;
  const times = { fromUnixMs, toUnixMs: wallMs };
  return appendTerm(history, { token, id, incarnation, ...times, why: 'unclean' });
}

/** The leader before the one that wins after `record`. Undefined: there was none. */
export function predecessorIn(
  record: AnyRecord | undefined,
  wasOurs: boolean,
): (CandidateInfo & { readonly token: bigint; readonly clean: boolean }) | undefined {
  if (record === undefined) return undefined;
  const { holding, history, token } = record;
  if (hasLed(holding)) return { ...holding.candidate, token, clean: wasOurs };
  const last = history.at(-1);
  if (last === undefined) return undefined;
  const { id, incarnation } = last;
  const clean = last.why !== 'unclean';
  return { id, incarnation, token: last.token, clean, addresses: [], metadata: {} };
}

/**
 * Opens the seat. The next winner finds the leaders that it has to fence. May be written only where
 * a candidate could take the seat: the holder cannot believe any more.
 */
export function vacated<Record extends AnyRecord>(
  record: Record,
  wasOurs: boolean,
  { nonce, wallMs }: Writing,
): Record {
  const unfenced = unfencedAfter(record, wasOurs);
  const history = historyAfter(record, wallMs);
  return { ...record, nonce, holding: undefined, unfenced, history };
}

/**
 * Takes back a win that landed too late, as if it had never been. Only its token stays: it is not
 * given again.
 * @param before the record that the win has replaced
 */
export function takenBack<Record extends AnyRecord>(
  record: Record,
  before: Record | undefined,
  wasOurs: boolean,
  nonce: string,
): Record {
  const reservation = before?.reservation;
  return {
    ...record,
    nonce,
    holding: undefined,
    reservation,
    unfenced: unfencedAfter(before, wasOurs),
  };
}

// --- by the leader ---

/** The end of a term whose leader says so. */
export interface CleanEnd {
  readonly reason: EndReason;
  /** False: the term was stopped before it began. */
  readonly hasLed: boolean;
  readonly fromUnixMs: number;
  readonly toUnixMs: number;
  /** The leaders that the next leader still has to fence. */
  readonly unfenced: readonly UncleanLeader[];
  /** Only this candidate may take the seat for `reserveMs`. Undefined: no candidate may. */
  readonly reservedFor?: string;
  readonly reserveMs?: number;
}

/** The leader gives the seat back. */
export function released<Record extends AnyRecord>(
  record: Record,
  { id, incarnation }: Pick<CandidateInfo, 'id' | 'incarnation'>,
  end: CleanEnd,
  { nonce, wallMs }: Writing,
): Record {
  const { reserveMs, reservedFor, hasLed: did, fromUnixMs, toUnixMs, reason: why } = end;
  const { token, holding } = record;
  // An operator that takes the seat by force opens it.
  const isOpen = reserveMs === undefined || holding?.revoked === true;
  return {
    ...record,
    nonce,
    holding: undefined,
    reservation: isOpen
      ? undefined
      : { for: reservedFor, reserveMs, untilUnixMs: wallMs + reserveMs },
    unfenced: end.unfenced,
    drains: keptDrains(record.drains, wallMs),
    history:
      did && hasLed(holding)
        ? appendTerm(record.history, { token, id, incarnation, fromUnixMs, toUnixMs, why })
        : record.history,
  };
}

// --- by a witness of the leader's death ---

/**
 * Gives the seat of a dead leader back. A hold stays: the job was done, and is not to be done again
 * before then.
 * @param hasWorkEnded the work is dead as well. False: the next leader has to fence it
 */
export function releasedForDead<Record extends AnyRecord>(
  record: Record,
  hasWorkEnded: boolean,
  { nonce, wallMs }: Writing,
): Record {
  const { holding, token } = record;
  if (holding === undefined) return record;
  const { candidate, electedAtUnixMs: fromUnixMs, held, revoked: isRevoked } = holding;
  const heldMs = held === undefined ? 0 : Math.min(held.ms, held.untilUnixMs - wallMs);
  const isHeld = held !== undefined && heldMs > 0 && !isRevoked;
  const reservation = isHeld
    ? { for: undefined, reserveMs: heldMs, untilUnixMs: held.untilUnixMs }
    : undefined;
  if (!hasWorkEnded || !hasLed(holding)) {
    return { ...vacated(record, false, { nonce, wallMs }), reservation };
  }
  const { id, incarnation } = candidate;
  const times = { fromUnixMs, toUnixMs: wallMs };
  // Readers of earlier versions refuse a reason that they do not know.
  const term = { token, id, incarnation, ...times, why: 'work-failed' as const };
  const history = appendTerm(record.history, term);
  return { ...record, nonce, holding: undefined, reservation, history };
}

// --- by operators: the leader stays on record, with all fields by which it knows its own writes
// ---

/**
 * Asks the leader to go.
 * @returns undefined when the same candidate is asked for already, or the seat is not held
 */
export function asked<Record extends AnyRecord>(
  record: Record,
  request: LeaderRequest,
): Record | undefined {
  const { holding } = record;
  if (holding === undefined) return undefined;
  const standing = holding.request;
  const isTransfer = standing?.kind === 'transfer' && request.kind === 'transfer';
  if (isTransfer && standing.to === request.to) return undefined;
  return { ...record, holding: { ...holding, request } };
}

/** The leader's confirmations do not count any more. All candidates still wait its belief out. */
export function revoked<Record extends AnyRecord>(record: Record, nonce: string): Record {
  const { holding } = record;
  if (holding === undefined) return record;
  const request: LeaderRequest = { kind: 'vacate', nonce };
  // The holder finds that it is revoked, and does not write the hold again.
  return { ...record, holding: { ...holding, request, revoked: true, held: undefined } };
}

/** Lifts a hold or a reservation, which keep the seat closed although no work runs. */
export function opened<Record extends AnyRecord>(record: Record): Record {
  const { holding } = record;
  if (holding === undefined) return { ...record, reservation: undefined };
  return { ...record, holding: { ...holding, held: undefined } };
}

/** @returns undefined when the record says so already */
export function ended<Record extends AnyRecord>(
  record: Record,
  isEnded: boolean,
): Record | undefined {
  return record.ended === isEnded ? undefined : { ...record, ended: isEnded };
}

/**
 * Keeps the candidate out until then. A time that is over lifts its drain.
 * @returns undefined when the record says so already
 * @throws RefusedError when the record has no room for another drain
 */
export function drained<Record extends AnyRecord>(
  record: Record,
  { id, untilUnixMs }: Drain,
  wallMs: number,
): Record | undefined {
  const standing = record.drains.find((drain) => drain.id === id);
  const lifts = untilUnixMs <= wallMs;
  if (lifts ? standing === undefined : standing?.untilUnixMs === untilUnixMs) return undefined;
  const rest = record.drains.filter((drain) => drain.id !== id);
  const others = keptDrains(rest, wallMs, lifts ? 0 : 1);
  if (!lifts && others.length >= drainLimit) {
    throw new RefusedError(
      `election "${record.election}" has ${drainLimit} drained candidates already, the most that are ` +
        'kept: lift one first',
    );
  }
  return { ...record, drains: lifts ? others : [...others, { id, untilUnixMs }] };
}

function hasLed(holding: Announced | undefined): holding is Announced {
  return holding !== undefined && holding.announced !== false;
}
