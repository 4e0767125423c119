/**
 * Every change of a record, as a pure function: no I/O, no clock, nothing random. Who calls these decides when a
 * change may be written; what it says is decided here, for all mechanisms. The token never falls: only whoever
 * wins writes another one, and it is higher.
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

/** What whoever writes a record brings along. */
export interface Writing {
  /** Never used before. */
  readonly nonce: string;
  readonly wallMs: number;
}

/** A lease names its holder before that one leads, a queue does not. */
interface Announced extends Holding {
  readonly announced?: boolean;
}

type AnyRecord = ElectionRecord<Announced>;

// --- after a leader whose end nobody confirmed ---

/**
 * Who would have to be fenced by whoever leads after `record`.
 * @param wasOurs whether the winner has written it: what it led in it is known to be over
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

/** With the term of a leader that never said that it stopped. */
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

/** Who led before whoever wins after `record`; undefined: nobody did. */
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
 * The seat is open, and whoever takes it finds whom to fence. Only to be written where a candidate could take the
 * seat: the holder cannot believe any more.
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
 * A win that landed too late is taken back: as if it had not been, but for its token, which is not given again.
 * @param before what the win has replaced
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

/** How a term ends that says so. */
export interface CleanEnd {
  readonly reason: EndReason;
  /** False: it was stopped before it began. */
  readonly hasLed: boolean;
  readonly fromUnixMs: number;
  readonly toUnixMs: number;
  /** Whoever still has to be fenced by the next leader. */
  readonly unfenced: readonly UncleanLeader[];
  /** Only this candidate may take the seat for `reserveMs`; undefined: nobody may. */
  readonly reservedFor?: string;
  readonly reserveMs?: number;
}

/** Its leader gives the seat back. */
export function released<Record extends AnyRecord>(
  record: Record,
  { id, incarnation }: Pick<CandidateInfo, 'id' | 'incarnation'>,
  end: CleanEnd,
  { nonce, wallMs }: Writing,
): Record {
  const { reserveMs, reservedFor, hasLed: did, fromUnixMs, toUnixMs, reason: why } = end;
  const { token, holding } = record;
  // An operator who takes the seat by force opens it.
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

// --- by operators: whoever leads stays on record, with all that its own writes are found by ---

/** The leader is asked to go. A candidate that is asked for already: undefined. */
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

/** Its leader's confirmations count no more; everybody still waits its belief out. */
export function revoked<Record extends AnyRecord>(record: Record, nonce: string): Record {
  const { holding } = record;
  if (holding === undefined) return record;
  const request: LeaderRequest = { kind: 'vacate', nonce };
  // Its holder finds that it is revoked, and does not write the hold again.
  return { ...record, holding: { ...holding, request, revoked: true, held: undefined } };
}

/** What keeps the seat closed although nobody works. */
export function opened<Record extends AnyRecord>(record: Record): Record {
  const { holding } = record;
  if (holding === undefined) return { ...record, reservation: undefined };
  return { ...record, holding: { ...holding, held: undefined } };
}

/** @returns undefined: it says so already */
export function ended<Record extends AnyRecord>(
  record: Record,
  isEnded: boolean,
): Record | undefined {
  return record.ended === isEnded ? undefined : { ...record, ended: isEnded };
}

/**
 * The candidate stays out until then; a time that is over lifts that.
 * @returns undefined: it says so already
 * @throws RefusedError when as many are kept as there may be
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
