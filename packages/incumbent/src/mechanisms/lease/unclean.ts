/** What is written after a record whose leader ended unclean, or after none. */
import type { Scope } from '../../core/contest.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import type { TermSummary, UncleanLeader } from '../../record/record.ts';
import { appendTerm, unfencedLimit } from '../../record/record.ts';

/**
 * Who would have to be fenced by whoever wins after `record`.
 * @param wasOurs whether the winner has written it: what it led in it is known to be over
 */
export function unfencedAfter(
  record: LeaseRecord | undefined,
  wasOurs: boolean,
): readonly UncleanLeader[] {
  if (record === undefined) return [];
  const { holding } = record;
  // A holder that was never announced has led nothing; and one's own ghost is known to be dead.
  if (holding === undefined || !holding.announced || wasOurs) return record.unfenced;
  return [...record.unfenced, { ...holding.candidate, token: record.token }].slice(-unfencedLimit);
}

/** With the term of a leader that never said that it stopped. */
export function historyAfter(
  record: LeaseRecord | undefined,
  wallMs: number,
): readonly TermSummary[] {
  const last = record?.holding;
  if (record === undefined || last?.announced !== true) return record?.history ?? [];
  return appendTerm(record.history, {
    token: record.token,
    id: last.candidate.id,
    incarnation: last.candidate.incarnation,
    fromUnixMs: last.electedAtUnixMs,
    toUnixMs: wallMs,
    why: 'unclean',
  });
}

/**
 * The seat is open, and whoever takes it finds whom to fence. Only to be written where a candidate could
 * take the seat: the holder cannot believe any more.
 */
export function vacatedAfter(
  record: LeaseRecord | undefined,
  scope: Scope,
  wasOurs: boolean,
): LeaseRecord {
  if (record === undefined) return emptyRecord(scope);
  return {
    ...record,
    nonce: scope.uniqueId(),
    holding: undefined,
    unfenced: unfencedAfter(record, wasOurs),
    history: historyAfter(record, scope.clock.wallMs()),
  };
}

/** The record of an election that nobody has led. */
export function emptyRecord(scope: Scope): LeaseRecord {
  return {
    election: scope.election,
    token: 0n,
    nonce: scope.uniqueId(),
    leaseMs: scope.timing.leaseMs,
    ended: false,
    holding: undefined,
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
  };
}
