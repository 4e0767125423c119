/** When a leader names the candidate behind it, and what it writes then. */
import { expect, it } from 'vitest';
import type { SeatEnd } from '../../src/core/contest.ts';
import type { NextPlace } from '../../src/mechanisms/queue/store.ts';
import { namingRecord } from '../../src/mechanisms/queue/successor.ts';
import type { QueueRecord } from '../../src/record/queue-record.ts';
import { emptyQueueRecord } from '../../src/record/queue-record.ts';

const wallMs = 1_000_000;
const of = (id: string) => ({ id, incarnation: `${id}-1`, addresses: [`${id}:1`], metadata: {} });

const holding = {
  ...{ candidate: of('a'), place: '/e/1', electedAtUnixMs: 5, leaseMs: 10_000, revoked: false },
  ...{ request: undefined, held: undefined, ready: undefined },
};
const record: QueueRecord = {
  ...emptyQueueRecord('e', 'of a'),
  ...{ token: 1n, place: '/e/1', beliefMs: 4_000, holding },
};
const mark = { nonce: 'of b', beliefMs: 8_000, leaseMs: 20_000, ready: undefined };
const next: NextPlace = { name: '/e/2', token: 2n, candidate: of('b'), mark, version: 7 };
const end: SeatEnd = {
  ...{ reason: 'resigned', hasLed: true, fromUnixMs: 5, toUnixMs: wallMs, unfenced: [] },
};
const left = { ...of('x'), token: 0n };

it('ends the term as clean, and names the next one with its own nonce and belief', () => {
  expect(namingRecord(record, next, end, wallMs)).toEqual({
    ...record,
    ...{ token: 2n, place: '/e/2', nonce: 'of b', beliefMs: 8_000 },
    holding: {
      ...holding,
      ...{ candidate: of('b'), place: '/e/2', leaseMs: 20_000, electedAtUnixMs: wallMs },
    },
    history: [
      { token: 1n, id: 'a', incarnation: 'a-1', fromUnixMs: 5, toUnixMs: wallMs, why: 'resigned' },
    ],
  });
});

it('does not say that a successor is ready which has not said so', () => {
  const unready = { ...next, mark: { ...mark, ready: false } as const };
  expect(namingRecord(record, unready, end, wallMs)?.holding?.ready).toBe(false);
});

it('does not pass on what was asked of the leader', () => {
  const asked = { ...holding, request: { kind: 'vacate', nonce: 'of an operator' } as const };
  const named = namingRecord({ ...record, holding: asked }, next, end, wallMs);
  expect(named?.holding?.request).toBeUndefined();
});

it.each<[string, Partial<QueueRecord>, Partial<NextPlace>, Partial<SeatEnd>]>([
  ['the term never began', {}, {}, { hasLed: false }],
  ['a leader is still to be fenced', {}, {}, { unfenced: [left] }],
  ['the record names one to be fenced', { unfenced: [left] }, {}, {}],
  ['the seat is reserved', {}, {}, { reservedFor: 'b', reserveMs: 1 }],
  ['the seat stays closed', {}, {}, { reserveMs: 1 }],
  ['the seat is held', { holding: { ...holding, held: { ms: 1, untilUnixMs: 0 } } }, {}, {}],
  ['the election is ended', { ended: true }, {}, {}],
  ['the term is revoked', { holding: { ...holding, revoked: true } }, {}, {}],
  ['the record names no leader', { holding: undefined }, {}, {}],
  ['the next one has no mark', {}, { mark: undefined }, {}],
  ['the next one has the incarnation of the leader', {}, { candidate: of('a') }, {}],
  ['the next one had a drain', { drains: [{ id: 'b', untilUnixMs: 1 }] }, {}, {}],
  ['the token would not rise', {}, { token: 1n }, {}],
])('names nobody when %s', (_, ofRecord, ofNext, ofEnd) => {
  const named = namingRecord(
    { ...record, ...ofRecord },
    { ...next, ...ofNext },
    { ...end, ...ofEnd },
    wallMs,
  );
  expect(named).toBeUndefined();
});
