import { resolveTiming } from 'incumbent';
import type { Scope } from 'incumbent/backend';
import { emptyLeaseRecord, uniqueId } from 'incumbent/internal';
import { SimulatedClock, SimulatedLeaseStore } from 'incumbent/testing';
import { expect, test } from 'vitest';
import { encodeSlot } from '../src/codec.ts';
import { SeenSlot } from '../src/seen-slot.ts';
import { newSlot } from '../src/slot.ts';

const state = newSlot({ number: 1n, nonce: 's' }, 16, { count: 4, digest: 0n });
const shards = Buffer.from(encodeSlot(state)).toString('base64');

test('a slot that was lost and made anew is waited for once, however often its new holder renews', async () => {
  const clock = new SimulatedClock();
  const scope: Scope = {
    ...{ election: 'queues/1', clock, timing: resolveTiming({ lease: '15s' }) },
    ...{ random: () => 0.5, uniqueId, onTrouble: () => {} },
  };
  const store = new SimulatedLeaseStore({ clock }).connect().open('queues/1');
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
