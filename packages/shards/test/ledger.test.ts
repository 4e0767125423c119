import { describe, expect, it } from 'vitest';
import type { Known, Ledger } from '../src/ledger.ts';
import { isSealed, nextTokenIn, slotsIn, standingsIn } from '../src/ledger.ts';
import type { SlotState } from '../src/slot.ts';
import {
  askedFor,
  askedNoMore,
  fenced,
  forgotten,
  givenUp,
  granted,
  isOutranked,
  leftBehind,
  newSlot,
  ranOut,
  sealed,
} from '../src/slot.ts';

const seal = { number: 7n, nonce: 'n' };
const slot = newSlot(seal, 2, { count: 4, digest: 0n });
const only = (shard: number) => new Set([shard]);
const grant = (shard: number, token: bigint) => ({ shard, token, unfenced: [] });
const owned = granted(slot, [grant(0, 5n), grant(2, 5n)]);

function ledgerOf(...slots: readonly (SlotState | Known)[]): Ledger {
  return new Map(slots.map((one, i) => [i + 1, 'seen' in one ? one : { seen: one, sent: [] }]));
}

describe('a slot', () => {
  it('gives up the terms that its holder names, and no later term of the same shard', () => {
    const left = givenUp(
      owned,
      new Map([
        [0, 5n],
        [2, 4n],
      ]),
    );
    expect(left.entries.map(({ state }) => state)).toEqual(['clean', 'owned']);
    const again = granted(left, [grant(0, 6n)]);
    expect(givenUp(again, new Map([[0, 5n]]))).toBe(again);
  });

  it('counts each change of its entries, and no other', () => {
    const asked = askedFor(owned, only(0));
    expect([slot, owned, asked].map(({ changes }) => changes)).toEqual([0n, 1n, 2n]);
    expect(askedNoMore(asked, only(0)).changes).toBe(3n);
    expect(askedFor(asked, only(0))).toBe(asked);
    expect(sealed(asked, { number: 8n, nonce: 'm' }, 4)).toMatchObject({ changes: 2n, slots: 4 });
  });

  it('deletes only entries that are left', () => {
    expect(forgotten(owned, only(0))).toBe(owned);
    const left = leftBehind(owned);
    expect(forgotten(left, only(0)).entries.map(({ shard }) => shard)).toEqual([2]);
  });

  it('hands on the leaders that were to be fenced, with its own holder', () => {
    const before = granted(slot, [{ shard: 1, token: 9n, unfenced: [{ id: 'a', token: 3n }] }]);
    const unfenced = [
      { id: 'a', token: 3n },
      { id: 'b', token: 9n },
    ];
    expect(ranOut(before, 'b').entries).toEqual([
      { shard: 1, token: 9n, state: 'unclean', unfenced },
    ]);
    const done = fenced(before, new Map([[1, 9n]]));
    expect(ranOut(done, 'b').entries[0]?.unfenced).toEqual([{ id: 'b', token: 9n }]);
    expect(fenced(done, new Map([[1, 9n]]))).toBe(done);
    const left = leftBehind(done);
    expect(ranOut(left, 'b').entries).toEqual(left.entries);
    // A holder that gives the shard up without fencing hands them on.
    expect(leftBehind(before).entries[0]).toMatchObject({
      state: 'clean',
      unfenced: [{ id: 'a' }],
    });
  });

  it('refuses what must never be written', () => {
    expect(() => granted(owned, [grant(0, 6n)])).toThrow('shard 0 is owned already');
    expect(() => granted(owned, [grant(1, 5n)])).toThrow('token 5 is not above 5');
    expect(() => sealed(slot, { number: 6n, nonce: 'z' }, 2)).toThrow('the higher seal 7');
  });

  it('has seals in one order', () => {
    const [a, b, c] = [seal, { number: 7n, nonce: 'o' }, { number: 8n, nonce: 'a' }];
    expect([isOutranked(a, b), isOutranked(b, c), isOutranked(a, c)]).toEqual([true, true, true]);
    expect([isOutranked(b, a), isOutranked(c, b), isOutranked(a, a)]).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe('a ledger', () => {
  it('is sealed when every slot has this very seal', () => {
    expect(isSealed(ledgerOf(slot, owned), seal, 2)).toBe(true);
    expect(isSealed(ledgerOf(slot, owned), seal, 3)).toBe(false);
    expect(isSealed(ledgerOf(slot, owned), { ...seal, nonce: 'o' }, 2)).toBe(false);
    // A seal that was sent is none yet.
    const old = newSlot({ number: 6n, nonce: 'n' }, 2, slot.list);
    expect(isSealed(ledgerOf(slot, { seen: old, sent: [slot] }), seal, 2)).toBe(false);
  });

  it('knows of as many slots as any slot names', () => {
    expect(slotsIn(ledgerOf(slot, sealed(slot, seal, 16)), 4)).toBe(16);
    expect(slotsIn(ledgerOf(slot), 4)).toBe(4);
    expect(slotsIn(new Map(), 0)).toBe(0);
  });

  it('counts a shard as owned while a write about it has no answer, whatever it says', () => {
    const left = givenUp(owned, new Map([[0, 5n]]));
    const again = granted(slot, [grant(0, 9n)]);
    const standing = (...slots: readonly (SlotState | Known)[]) =>
      standingsIn(ledgerOf(...slots), 4)[0];
    expect(standing(left, slot)).toEqual({ kind: 'free', token: 5n, unfenced: [] });
    expect(standing(left, { seen: slot, sent: [again] })).toEqual({ kind: 'owned' });
    expect(standing({ seen: owned, sent: [ranOut(owned, 'a')] }, slot)).toEqual({ kind: 'owned' });
  });

  it('goes by the newest entry of a shard that nobody owns', () => {
    const first = ranOut(granted(slot, [grant(3, 5n)]), 'a');
    const second = leftBehind(fenced(granted(slot, [grant(3, 6n)]), new Map([[3, 6n]])));
    for (const ledger of [ledgerOf(first, second), ledgerOf(second, first)]) {
      expect(standingsIn(ledger, 4)[3]).toEqual({ kind: 'free', token: 6n, unfenced: [] });
    }
    expect(standingsIn(ledgerOf(first), 4)[3]).toMatchObject({
      unfenced: [{ id: 'a', token: 5n }],
    });
    expect(standingsIn(ledgerOf(first), 4)[0]).toEqual({ kind: 'unknown' });
  });

  it('gives a token above every token that a slot was given, or may have been given', () => {
    const higher = granted(slot, [grant(1, 40n)]);
    expect(nextTokenIn(ledgerOf(owned, slot), 0n)).toBe(6n);
    expect(nextTokenIn(ledgerOf(owned, { seen: slot, sent: [higher] }), 0n)).toBe(41n);
    // Entries may be gone: the slot remembers.
    expect(nextTokenIn(ledgerOf(forgotten(leftBehind(higher), only(1))), 0n)).toBe(41n);
    expect(nextTokenIn(ledgerOf(owned), 99n)).toBe(100n);
  });
});
