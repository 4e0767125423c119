/** Why the seat is vacant, as far as one look at the store tells. */
import type { NotElectedReason, Snapshot, UncleanLeader } from 'incumbent';
import { describeNotElected } from 'incumbent';
import { isLedOnce } from './describe.ts';
import { span } from './span.ts';

/** The result of one look, as candidates with the default lease see it. */
export interface Inspected extends Snapshot {
  /** Their lease, or that of the record where it is longer. */
  readonly candidateLeaseMs: number;
}

/**
 * A command that only asks has a lease of its own, so long that nothing has to be hurried. When a
 * store may have forgotten a leader, candidates wait for *their* lease.
 * @param askedLeaseMs the lease of the command
 * @param candidateLeaseMs the default on this store
 */
export function asCandidatesSee(
  snapshot: Snapshot,
  askedLeaseMs: number,
  candidateLeaseMs: number,
  nowUnixMs: number,
): Inspected {
  const { settling, leaseMs = 0, ...rest } = snapshot;
  const counted = Math.max(askedLeaseMs, leaseMs);
  const theirs = Math.max(candidateLeaseMs, leaseMs);
  const seen: Inspected = { ...rest, leaseMs: snapshot.leaseMs, candidateLeaseMs: theirs };
  if (settling?.kind !== 'settling') return seen;
  const untilUnixMs = settling.untilUnixMs - counted + theirs;
  return untilUnixMs <= nowUnixMs ? seen : { ...seen, settling: { ...settling, untilUnixMs } };
}

/**
 * A reservation keeps the seat for one candidate, or closes it to all. One that is over no longer
 * counts.
 */
export function currentReservation(
  { reservation }: Snapshot,
  nowUnixMs: number,
): Snapshot['reservation'] {
  return reservation !== undefined && reservation.untilUnixMs > nowUnixMs ? reservation : undefined;
}

export function settlingWords(
  { settling, candidateLeaseMs }: Inspected,
  nowUnixMs: number,
): string | undefined {
  if (settling === undefined) return undefined;
  return `${describeNotElected(settling, nowUnixMs)}, at a lease of ${span(candidateLeaseMs)}`;
}

/** The election has never been led, or the store has forgotten its leaders. */
export const noLeaderOnRecord = 'no leader is on record';

/** A leader that must be fenced before another one leads, and the takeover that could not. */
export function unfencedWords({ id, token, failure }: UncleanLeader): string {
  const leader = `${id} (token ${token})`;
  if (failure === undefined) return leader;
  const { by, why = 'its log says why it failed' } = failure;
  return `${leader}, tried by ${by}: ${why}`;
}

/** For a sentence; undefined: no reason is known. */
export function whyVacant(snapshot: Inspected, nowUnixMs: number): string | undefined {
  const why = whyOpen(snapshot, nowUnixMs);
  const unfenced = snapshot.unfenced.map((leader) => `not fenced yet: ${unfencedWords(leader)}`);
  if (unfenced.length === 0) return why;
  return [...(why === undefined ? [] : [why]), ...unfenced].join('; ');
}

function whyOpen(snapshot: Inspected, nowUnixMs: number): string | undefined {
  const reservation = currentReservation(snapshot, nowUnixMs);
  if (reservation !== undefined) {
    const { for: whom, untilUnixMs } = reservation;
    const why: NotElectedReason = {
      kind: 'reserved',
      ...(whom === undefined ? {} : { for: whom }),
      untilUnixMs,
    };
    return describeNotElected(why, nowUnixMs);
  }
  const settling = settlingWords(snapshot, nowUnixMs);
  if (settling !== undefined) return settling;
  if (snapshot.holderGone) return 'the last leader is dead';
  // A seat that is held but not announced.
  if (snapshot.leaseMs !== undefined) return 'somebody is taking over';
  return isLedOnce(snapshot.view) ? undefined : noLeaderOnRecord;
}
