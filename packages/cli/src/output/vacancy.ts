/** Why nobody leads, as far as one look at the store tells. */
import type { NotElectedReason, Snapshot } from 'incumbent';
import { describeNotElected } from 'incumbent';
import { span } from '../terminal/time.ts';
import { isLedOnce } from './describe.ts';

/** What one look told, as candidates with the default lease see it. */
export interface Inspected extends Snapshot {
  /** Theirs, or that of the record where it is longer. */
  readonly candidateLeaseMs: number;
}

/**
 * One who only asks has a lease of its own, so long that nothing has to be hurried. A store that may
 * have forgotten a leader is waited for by candidates for *their* lease.
 * @param askedLeaseMs that of who asked
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

/** Until when nobody, or only one candidate, may take the seat; one that is over counts no more. */
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

/** Nobody has led it, or the store has forgotten. */
export const noLeaderOnRecord = 'no leader is on record';

/** For a sentence; undefined: nothing is known. */
export function whyVacant(snapshot: Inspected, nowUnixMs: number): string | undefined {
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
