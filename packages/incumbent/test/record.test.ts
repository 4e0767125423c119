// The terms and candidates in a record.
import { describe, expect, test } from 'vitest';
import { decodeCandidates, encodeCandidate } from '../src/record/candidate-entry.ts';
import type { ElectionRecord, Holding, TermSummary, Terms } from '../src/record/record.ts';
import { drainOf, electedSince, termsOf } from '../src/record/record.ts';

function candidate(id: string, incarnation: string) {
  return { id, incarnation, addresses: [`${id}:1`], metadata: { zone: '1' } };
}

test('the first leader of an election was elected after a candidate that found no record', () => {
  const holding: Holding = {
    candidate: candidate('a', 'x'),
    electedAtUnixMs: 1,
    revoked: false,
    request: undefined,
  };
  const record: ElectionRecord = {
    ...{ election: 'jobs', token: 1n, nonce: 'n', ended: false, holding, reservation: undefined },
    ...{ unfenced: [], drains: [], history: [] },
  };
  expect(electedSince(termsOf(undefined), termsOf(record))).toEqual({
    ...{ kind: 'led', id: 'a', token: 1n, over: true },
  });
  expect(electedSince(termsOf(record), termsOf(record))).toBeUndefined();
});

describe('a term that was elected since the first look', () => {
  const led = (id: string, token: bigint): TermSummary => ({
    ...{ id, incarnation: `of ${id}`, token, fromUnixMs: 1, toUnixMs: 2, why: 'work-finished' },
  });
  const terms = (
    token: bigint,
    history: readonly TermSummary[],
    holder?: string,
    announced = true,
  ): Terms => ({
    ...{ token, history },
    holder: holder === undefined ? undefined : { ...candidate(holder, `of ${holder}`), announced },
  });
  const before = terms(5n, [led('a', 4n)], 'b');

  test.each<readonly [string, Terms, Terms, readonly [string, bigint] | undefined]>([
    ['is none while the same one leads', before, before, undefined],
    ['leads', before, terms(6n, [led('a', 4n), led('b', 5n)], 'c'), ['c', 6n]],
    [
      'is none before it is announced',
      before,
      terms(6n, [led('a', 4n), led('b', 5n)], 'c', false),
      undefined,
    ],
    [
      'is that which waited at the first look',
      terms(5n, [], 'b', false),
      terms(5n, [], 'b'),
      ['b', 5n],
    ],
    [
      'is over, and is the last of several',
      before,
      terms(7n, [led('a', 4n), led('b', 5n), led('c', 6n), led('d', 7n)]),
      ['d', 7n],
    ],
    [
      'is not that which led at the first look',
      before,
      terms(5n, [led('a', 4n), led('b', 5n)]),
      undefined,
    ],
    [
      'is that which waited at the first look, and is over',
      terms(5n, [led('a', 4n)], 'b', false),
      terms(5n, [led('a', 4n), led('b', 5n)]),
      ['b', 5n],
    ],
    [
      'is another one of the same candidate',
      before,
      terms(6n, [led('a', 4n), led('b', 5n), led('b', 6n)]),
      ['b', 6n],
    ],
    ['is none after a store was set back', before, terms(3n, [led('a', 4n)], 'x'), undefined],
  ])('%s', (_, first, now, expected) => {
    const [id, token] = expected ?? [];
    const why = expected && { kind: 'led', id, token, over: true };
    expect(electedSince(first, now)).toEqual(why);
  });
});

test('a drain keeps its own candidate out, until the moment that it names', () => {
  const drains = [
    { id: 'a', untilUnixMs: 10 },
    { id: 'b', untilUnixMs: 20 },
  ];
  expect(drainOf({ drains }, 'b', 19)).toBe(drains[1]);
  expect(drainOf({ drains }, 'b', 20)).toBeUndefined();
  expect(drainOf({ drains }, 'c', 0)).toBeUndefined();
  expect(drainOf(undefined, 'a', 0)).toBeUndefined();
});

describe('the candidates that a store lists', () => {
  test('are sorted by id, and those of one id by their incarnations', () => {
    const sorted = [candidate('a', 'z'), candidate('b', 'x'), candidate('b', 'y')];
    const [first = '', second = '', third = ''] = sorted.map(encodeCandidate);
    for (const entries of [
      [first, second, third],
      [first, third, second],
      [third, second, first],
      [second, third, first],
    ]) {
      expect(decodeCandidates(entries)).toEqual(sorted);
    }
  });

  test('have no addresses and no metadata where an entry does not hold texts', () => {
    const found = candidate('a', 'x');
    const entries = [
      { ...found, addresses: ['h:1', 2] },
      { ...found, metadata: { zone: 1 } },
    ];
    expect(decodeCandidates(entries.map((entry) => JSON.stringify(entry)))).toEqual([
      { ...found, addresses: [] },
      { ...found, metadata: {} },
    ]);
  });
});
