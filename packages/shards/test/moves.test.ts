import type { Timing } from 'incumbent';
import { beforeEach, expect, test } from 'vitest';
import { Moves } from '../src/moves.ts';
import type { SeenSlot } from '../src/seen-slot.ts';
import type { EntryState } from '../src/slot.ts';
import { newSlot } from '../src/slot.ts';

const timing = { renewEveryMs: 3_000, stopTimeoutMs: 10_000, leaseMs: 15_000 } as Timing;

let moves: Moves;

beforeEach(() => {
  moves = new Moves();
});

/** Members with these numbers, of which the first one has a shard. */
function see(numbers: readonly number[], nowMs: number, state: EntryState = 'owned', token = 5n) {
  const slots = numbers.map((number, i) => ({
    number,
    record: { token: 1n, holding: {} },
    state: {
      ...newSlot({ number: 1n, nonce: 's' }, 16, { count: 1, digest: 0n }),
      highest: 5n,
      entries: i === 0 ? [{ shard: 0, token, state, unfenced: [] }] : [],
    },
  }));
  return moves.see(slots as unknown as SeenSlot[], new Set(numbers), new Set(), nowMs, timing);
}

test('moves wait until no process has come or gone for one renewal interval', () => {
  see([1], 0);
  expect(see([1, 2], 10_000)).toMatchObject({ mayMove: false, dueMs: 13_000 });
  expect(see([1, 2], 12_999).mayMove).toBe(false);
  expect(see([1, 2], 13_000).mayMove).toBe(true);
});

test('moves wait for three renewal intervals at most while processes come one after another', () => {
  see([1], 0);
  see([1], 10_000);
  for (let i = 0; i < 4; i += 1) {
    const numbers = Array.from({ length: 2 + i }, (_, each) => each + 1);
    expect(see(numbers, 20_000 + 2_500 * i).mayMove).toBe(false);
  }
  expect(see([1, 2, 3, 4, 5, 6], 29_000).mayMove).toBe(true);
});

test('moves wait again after a long quiet time in which nobody looked', () => {
  see([1], 0);
  see([1, 2], 1_000);
  expect(see([1, 2, 3], 60_000).mayMove).toBe(false);
});

test('a shard that is asked for is overdue after stopTimeout', () => {
  see([1], 0, 'asked');
  expect(see([1], 10_000, 'asked').overdue.size).toBe(0);
  expect(see([1], 10_001, 'asked').overdue).toEqual(new Set([0]));
  // Another term of it.
  expect(see([1], 10_001, 'asked', 6n).overdue.size).toBe(0);
});

test('a shard that is given up unasked rests for longer each time, and elsewhere', () => {
  see([1], 0);
  expect(see([1], 1_000, 'clean').resting).toEqual(new Set([0]));
  expect(see([1], 1_999, 'clean').avoided).toEqual(new Map([[0, 1]]));
  expect(see([1], 2_000, 'clean').resting.size).toBe(0);
  see([1], 3_000, 'owned', 6n);
  expect(see([1], 4_000, 'clean', 6n).resting.size).toBe(1);
  expect(see([1], 5_999, 'clean', 6n).resting.size).toBe(1);
  expect(see([1], 6_000, 'clean', 6n).resting.size).toBe(0);
});
