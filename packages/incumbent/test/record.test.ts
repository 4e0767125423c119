// The terms and candidates in a record.
import { describe, expect, test } from 'vitest';
import { decodeCandidates, encodeCandidate } from '../src/record/candidate-entry.ts';
import type { ElectionRecord, Holding } from '../src/record/record.ts';
import { electedSince, termsOf } from '../src/record/record.ts';

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
