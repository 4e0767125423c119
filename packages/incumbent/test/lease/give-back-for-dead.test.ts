/** The record after a witness has given back the lease of a leader that it saw die. */
import { describe, expect, test } from 'vitest';
import { SeatTeller } from '../../src/core/seat-identity.ts';
import type { LeaseRecord } from '../../src/record/lease-record.ts';
import { emptyLeaseRecord } from '../../src/record/lease-record.ts';
import { releasedForDead } from '../../src/record/transitions.ts';

const wallMs = 1_000_000;
const candidate = { id: 'a', incarnation: 'i', addresses: ['a:1'], metadata: {} };
const other = { id: 'z', incarnation: 'j', addresses: [], metadata: {}, token: 2n };

function held(more: Partial<NonNullable<LeaseRecord['holding']>> = {}): LeaseRecord {
  const holding = {
    ...{ candidate, electedAtUnixMs: wallMs - 60_000, announced: true, actors: null },
    ...{ revoked: false, request: undefined },
    ...more,
  };
  const drains = [{ id: 'b', untilUnixMs: wallMs + 5_000 }];
  const record = { ...emptyLeaseRecord('jobs', 'n', 15_000), token: 3n, holding, drains };
  return holding.announced ? record : { ...record, unfenced: [other] };
}

const writing = { nonce: 'w', wallMs };
const give = (record: LeaseRecord, hasWorkEnded = true) =>
  releasedForDead(record, hasWorkEnded, writing);

describe('a seat that is given back for the dead', () => {
  test('is vacant, with its term in the history as clean, and what operators wrote', () => {
    const next = give({ ...held(), ended: true });
    expect(next).toMatchObject({ token: 3n, nonce: 'w', ended: true, unfenced: [] });
    expect(next.holding).toBeUndefined();
    expect(next.reservation).toBeUndefined();
    expect(next.drains).toEqual(held().drains);
    expect(next.history).toEqual([
      {
        ...{ token: 3n, id: 'a', incarnation: 'i', why: 'work-failed' },
        ...{ fromUnixMs: wallMs - 60_000, toUnixMs: wallMs },
      },
    ]);
  });

  test('is to be fenced when its work may live', () => {
    const next = give(held(), false);
    expect(next.holding).toBeUndefined();
    expect(next.unfenced).toEqual([{ ...candidate, token: 3n }]);
    expect(next.history.map(({ why }) => why)).toEqual(['unclean']);
  });

  test.each([true, false])(
    'that had not led yet leaves the leaders before it to be fenced (%s)',
    (hasWorkEnded) => {
      const next = give(held({ announced: false }), hasWorkEnded);
      expect(next.holding).toBeUndefined();
      expect(next.unfenced).toEqual([other]);
      expect(next.history).toEqual([]);
    },
  );

  test('stays closed for the rest of its hold', () => {
    const hold = { ms: 30_000, untilUnixMs: wallMs + 20_000 };
    for (const hasWorkEnded of [true, false]) {
      expect(give(held({ held: hold }), hasWorkEnded).reservation).toEqual({
        ...{ for: undefined, reserveMs: 20_000, untilUnixMs: hold.untilUnixMs },
      });
    }
    // Over, or lifted by an operator's force.
    const over = { ms: 30_000, untilUnixMs: wallMs - 1 };
    expect(give(held({ held: over })).reservation).toBeUndefined();
    expect(give(held({ held: hold, revoked: true })).reservation).toBeUndefined();
  });
});

describe('what a witness is told', () => {
  const setUp = () => {
    const told: unknown[] = [];
    const errors: unknown[] = [];
    const teller = new SeatTeller(
      candidate,
      (seat) => told.push(seat),
      (error) => errors.push(error),
    );
    return { told, errors, teller };
  };

  test('the writes of one term, the last of them', () => {
    const { told, teller } = setUp();
    for (let i = 1; i <= 40; i += 1) teller.onWrite({ token: 5n, nonce: `n${i}` });
    const last = told.at(-1) as { readonly nonces: readonly string[] };
    expect(last).toMatchObject({ id: 'a', incarnation: 'i', token: '5' });
    expect([last.nonces.length, last.nonces[0], last.nonces.at(-1)]).toEqual([32, 'n9', 'n40']);
    teller.onWrite({ token: 6n, nonce: 'm' });
    expect(told.at(-1)).toMatchObject({ token: '6', nonces: ['m'] });
  });

  test('that the term is over, once', () => {
    const { told, teller } = setUp();
    teller.onOver();
    teller.onWrite({ token: 5n, nonce: 'n' });
    teller.onOver();
    teller.onOver();
    expect(told).toEqual([expect.objectContaining({ token: '5' }), undefined]);
  });

  test('an error of the listener is trouble, and no end', () => {
    const errors: unknown[] = [];
    const thrown = new Error('no');
    const teller = new SeatTeller(
      candidate,
      () => {
        throw thrown;
      },
      (error) => errors.push(error),
    );
    teller.onWrite({ token: 5n, nonce: 'n' });
    expect(errors).toEqual([thrown]);
  });
});
