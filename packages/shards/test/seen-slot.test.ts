import { RecordDamagedError, resolveTiming } from 'incumbent';
import type { Reading, Scope } from 'incumbent/backend';
import { emptyLeaseRecord, uniqueId } from 'incumbent/internal';
import { SimulatedClock, SimulatedLeaseStore } from 'incumbent/testing';
import { expect, test } from 'vitest';
import { encodeSlot } from '../src/codec.ts';
import { SeenSlot } from '../src/seen-slot.ts';
import { ownedTwice } from '../src/seen-slots.ts';
import type { SlotState } from '../src/slot.ts';
import { granted, newSlot } from '../src/slot.ts';

const state = newSlot({ number: 1n, nonce: 's' }, 16, { count: 4, digest: 0n });
const shards = Buffer.from(encodeSlot(state)).toString('base64');

const clock = new SimulatedClock();
const scope: Scope = {
  ...{ election: 'queues/1', clock, timing: resolveTiming({ lease: '15s' }) },
  ...{ random: () => 0.5, uniqueId, onTrouble: () => {} },
};
const store = new SimulatedLeaseStore({ clock }).connect().open('queues/1');
const error = new RecordDamagedError('queues/1', 'of a test');

function readingOf(slot: SlotState, version: number): Reading {
  const shards = Buffer.from(encodeSlot(slot)).toString('base64');
  return { record: { ...emptyLeaseRecord('queues/1', uniqueId(), 15_000), shards }, version };
}

test('damage that moves shows a holder that lives, so the time for which it stands begins again', async () => {
  const slot = new SeenSlot(1, store, scope);
  const spoil = (look: number, version: number) =>
    slot.spoil(error, look, { ...readingOf(state, version) });
  expect(spoil(1, 1)).toBe(true);
  await clock.advance('3s');
  expect(spoil(2, 1)).toBe(false);
  expect(slot.spoiltMs).toBe(3_000);
  await clock.advance('3s');
  expect(spoil(3, 2)).toBe(false);
  expect(slot.spoiltMs).toBe(0);
  expect(slot.version).toBe(2);
  await clock.advance('3s');
  // Its version is not known, so nothing shows that it has moved.
  slot.spoil(error, 4, undefined);
  expect([slot.spoiltMs, slot.canReplace]).toEqual([3_000, false]);
  slot.learn(readingOf(state, 3), 5);
  expect(slot.spoiltMs).toBe(0);
});

test('a shard that an unreadable slot had when it could be read has no two owners', () => {
  const slots = [1, 2].map((number) => new SeenSlot(number, store, scope));
  const owned = granted(state, [{ shard: 3, token: 1n, unfenced: [] }]);
  for (const slot of slots) slot.learn(readingOf(owned, 1), 1);
  expect(ownedTwice(slots)).toBe(true);
  slots[0]?.spoil(error, 2, undefined);
  expect(ownedTwice(slots)).toBe(false);
});

test('a slot that was lost and made anew is waited for once, however often its new holder renews', async () => {
  const slot = new SeenSlot(1, store, scope);
  let looks = 0;
  const look = (token: bigint | undefined) => {
    const empty = emptyLeaseRecord('queues/1', uniqueId(), 15_000);
    const record = token === undefined ? undefined : { ...empty, token, shards };
    looks += 1;
    slot.learn({ record, version: looks }, looks);
  };
  look(5n);
  expect(slot.settlesMs).toBe(0);
  look(undefined);
  expect(slot.settlesMs).toBe(15_000);
  look(0n);
  for (let seconds = 3; seconds < 15; seconds += 3) {
    await clock.advance('3s');
    look(1n);
    expect(slot.settlesMs).toBeGreaterThan(0);
  }
  await clock.advance('3s');
  look(1n);
  expect(slot.settlesMs).toBe(0);
  // The next loss is found again.
  look(0n);
  expect(slot.settlesMs).toBe(15_000);
});
