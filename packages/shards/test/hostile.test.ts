import type { Term } from 'incumbent';
import type { LeaseRecord } from 'incumbent/backend';
import { systemClock } from 'incumbent/internal';
import { expect, test } from 'vitest';
import type { ShardTerm } from '../src/shard-term.ts';
import { askedFor, givenUp, granted, newSlot } from '../src/slot.ts';
import { Stay } from '../src/stay.ts';

const list = { count: 4, digest: 0n };

test('a record that was set back and then changed does not bring back a shard that was given up', async () => {
  const begun: bigint[] = [];
  const stay = new Stay<number>({
    slotName: 'the slot',
    list,
    weight: 1,
    zone: '',
    nameOf: (number) => number,
    onChange: () => {},
    settings: {
      name: 'queues',
      candidate: 'a',
      clock: systemClock,
      stopTimeoutMs: 1_000,
      hookTimeoutMs: 1_000,
      onUnclean: [],
      onTrouble: () => {},
      own: (shard: number, term: ShardTerm<number>) => {
        if (shard === 0) begun.push(term.token);
        return new Promise<void>((resolve) => {
          term.signal.addEventListener('abort', () => resolve());
        });
      },
    },
  });
  const signal = new AbortController().signal;
  stay.begin({
    token: 1n,
    signal,
    isLeading: () => true,
    proclaim: async () => {},
  } as unknown as Term);
  const record = { token: 1n, nonce: 'n', holding: { candidate: { id: 'a' } } } as unknown as LeaseRecord;
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  const owned = granted(newSlot({ number: 1n, nonce: 's' }, 16, list), [
    { shard: 0, token: 5n, unfenced: [] },
    { shard: 1, token: 5n, unfenced: [] },
  ]);
  stay.onWritten({ record, state: owned });
  await turn();
  expect(begun).toEqual([5n]);
  const asked = askedFor(owned, new Set([0]));
  stay.onWritten({ record, state: asked });
  await turn();
  const left = givenUp(asked, new Map([[0, 5n]]));
  stay.onWritten({ record, state: left });
  expect(begun).toEqual([5n]);
  // Another process has shard 0 by now. The slot is set back to `asked`, and then asked for shard 1.
  const mark = stay.onReading();
  const setBack = askedFor(asked, new Set([1]));
  stay.onRead({ record, state: setBack }, mark);
  stay.onWritten({ record, state: setBack });
  await turn();
  expect(begun).toEqual([5n]);
  // The stay writes no more, and the lease race finds another record than its own.
  expect(stay.isLost).toBe(true);
  expect(stay.onRead({ record, state: setBack }, mark)?.nonce).not.toBe('n');
});

