/** Records that keep a free seat closed to candidate `a`, or do not: alike in the queue and for the lock. */
import type { QueueRecord } from '../../src/record/queue-record.ts';
import { emptyQueueRecord } from '../../src/record/queue-record.ts';

export const blank: QueueRecord = emptyQueueRecord('jobs', 'n');

/** For how long they do, in ms. */
export const closedMs = 1_000;

type Fields = Partial<Pick<QueueRecord, 'reservation' | 'drains'>>;

/**
 * Instants count from now. The last field is the reason that the candidate is told. Undefined: the
 * seat is open to it.
 */
export const notForIt: readonly (readonly [string, Fields, object | undefined])[] = [
  [
    'for another',
    { reservation: { for: 'x', reserveMs: 1e6, untilUnixMs: closedMs } },
    { kind: 'reserved', for: 'x' },
  ],
  [
    'for nobody',
    { reservation: { for: undefined, reserveMs: 1e6, untilUnixMs: closedMs } },
    { kind: 'reserved' },
  ],
  ['for itself', { reservation: { for: 'a', reserveMs: 1e6, untilUnixMs: closedMs } }, undefined],
  [
    'for another, until now',
    { reservation: { for: 'x', reserveMs: 1e6, untilUnixMs: 0 } },
    undefined,
  ],
  [
    'for another, for as long as it has looked',
    { reservation: { for: 'x', reserveMs: 0, untilUnixMs: closedMs } },
    undefined,
  ],
  ['drained', { drains: [{ id: 'a', untilUnixMs: closedMs }] }, { kind: 'drained' }],
  ['drained until now', { drains: [{ id: 'a', untilUnixMs: 0 }] }, undefined],
  ['another is drained', { drains: [{ id: 'x', untilUnixMs: closedMs }] }, undefined],
];

/** The record with those fields. */
export function closedSince(nowMs: number, { reservation, drains = [] }: Fields): QueueRecord {
  return {
    ...blank,
    ...(reservation && {
      reservation: { ...reservation, untilUnixMs: nowMs + reservation.untilUnixMs },
    }),
    drains: drains.map(({ id, untilUnixMs }) => ({ id, untilUnixMs: nowMs + untilUnixMs })),
  };
}
