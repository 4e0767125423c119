/**
 * The successor that a leader names in the transaction that gives its place up. Pure: the proof, and
 * the reason of each condition, are in docs/design/successor.md.
 */
import type { CandidateInfo } from '../../base/candidate.ts';
import type { SeatEnd } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { released } from '../../record/transitions.ts';
import type { NextPlace } from './store.ts';

/**
 * The record that ends our term as clean, and names the candidate behind us.
 * @param record the very version that is to be replaced. It names us
 * @returns undefined when the seat is to be left vacant, as always before
 */
export function namingRecord(
  record: QueueRecord,
  { mark, candidate, name: place, token }: NextPlace,
  end: SeatEnd,
  wallMs: number,
): QueueRecord | undefined {
  const { holding, ended, reservation, unfenced, drains } = record;
  if (mark === undefined || holding === undefined || !end.hasLed) return undefined;
  if (ended || holding.revoked || holding.held !== undefined) return undefined;
  // The seat is to stay closed, or another candidate is to have it.
  if (reservation !== undefined || end.reserveMs !== undefined) return undefined;
  // A named successor runs no hooks.
  if (unfenced.length > 0 || end.unfenced.length > 0) return undefined;
  if (token <= record.token || isOurs(candidate, holding.candidate)) return undefined;
  // Whatever the time of the drain: its clock is not ours.
  if (drains.some(({ id }) => id === candidate.id)) return undefined;
  const { nonce, beliefMs, leaseMs, ready } = mark;
  const vacant = released(record, holding.candidate, end, { nonce, wallMs });
  return {
    ...vacant,
    ...{ token, place, beliefMs },
    holding: {
      ...{ candidate, place, leaseMs, ready },
      ...{ electedAtUnixMs: wallMs, revoked: false, request: undefined, held: undefined },
    },
  };
}

/**
 * The record as if the successor that it names had not been named. Only for that successor itself,
 * which has not led: for all others it may lead.
 */
export function withoutNaming(record: QueueRecord): QueueRecord {
  return { ...record, holding: undefined, reservation: undefined };
}

function isOurs(successor: CandidateInfo, leader: CandidateInfo): boolean {
  return successor.incarnation === leader.incarnation;
}
