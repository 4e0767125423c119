import { getEventListeners } from 'node:events';
import type { Term } from 'incumbent';
import { TermEndedError } from 'incumbent';
import type { LeaseRecord } from 'incumbent/backend';
import { SimulatedClock } from 'incumbent/testing';
import { beforeEach, expect, test } from 'vitest';
import type { Grant, SlotState } from '../src/slot.ts';
import { askedFor, givenUp, granted, newSlot } from '../src/slot.ts';
import { Stay } from '../src/stay.ts';

const list = { count: 4, digest: 0n };
/** As the record names its holder. */
const record = {
  token: 1n,
  nonce: 'n',
  holding: { candidate: { id: 'a' } },
} as unknown as LeaseRecord;
const grant = (shard: number, token: bigint): Grant => ({ shard, token, unfenced: [] });
const turn = () => new Promise((resolve) => setImmediate(resolve));

let begun: string[];
let names: Set<number>;
let unknown: number;
let over: AbortController;
let stay: Stay<number>;

beforeEach(() => {
  over = new AbortController();
  begun = [];
  names = new Set([0, 1, 2, 3]);
  unknown = 0;
  stay = new Stay<number>({
    slotName: 'the slot',
    list,
    ...{ weight: 1, zone: '' },
    nameOf: (number) => (names.has(number) ? number : undefined),
    onUnknown: () => {
      unknown += 1;
    },
    onChange: () => {},
    settings: {
      ...{ name: 'queues', candidate: 'a', manual: false },
      clock: new SimulatedClock(),
      ...{ stopTimeoutMs: 1_000, hookTimeoutMs: 1_000, onUnclean: [] },
      onTrouble: () => {},
      own: (shard, term) => {
        begun.push(`${shard}: ${term.token}`);
        return new Promise<void>((resolve) => {
          term.signal.addEventListener('abort', () => resolve());
        });
      },
    },
  });
  stay.begin({
    token: 1n,
    signal: over.signal,
    isLeading: () => true,
    proclaim: async () => {},
  } as unknown as Term);
});

async function confirm(state: SlotState): Promise<void> {
  stay.onWritten({ record, state });
  await turn();
}

test('the end of a stay is listened to once for all shards, and ends each of them with its reason', async () => {
  const grants = [0, 1, 2, 3].map((shard) => grant(shard, 5n));
  await confirm(granted(newSlot({ number: 1n, nonce: 's' }, 16, list), grants));
  expect(getEventListeners(over.signal, 'abort')).toHaveLength(1);
  const signals = stay.terms.map(({ signal }) => signal);
  expect(signals).toHaveLength(4);
  over.abort(new TermEndedError('vacated', 1n, 'the stay is over'));
  for (const { reason } of signals) {
    expect(reason).toMatchObject({ reason: 'vacated', token: 5n, cause: over.signal.reason });
  }
  await stay.settled();
  expect(stay.terms).toEqual([]);
});

test('a record that was set back and has changed since brings no shard back', async () => {
  const owned = granted(newSlot({ number: 1n, nonce: 's' }, 16, list), [
    grant(0, 5n),
    grant(1, 5n),
  ]);
  await confirm(owned);
  expect(begun).toEqual(['0: 5', '1: 5']);
  const asked = askedFor(owned, new Set([0]));
  await confirm(asked);
  const left = givenUp(asked, new Map([[0, 5n]]));
  await confirm(left);
  expect(stay.isLost).toBe(false);

  // It has as many changes as the one before.
  const setBack = askedFor(asked, new Set([1]));
  expect(setBack.changes).toBe(left.changes);
  await confirm(setBack);
  expect(begun).toEqual(['0: 5', '1: 5']);
  expect(stay.isLost).toBe(true);
  // For the lease race another process has written it, so that the term ends at once.
  expect(stay.onRead({ record, state: setBack }, stay.onReading())?.nonce).not.toBe(record.nonce);
});

test('a record without a shard that is worked for was set back', async () => {
  const before = granted(newSlot({ number: 1n, nonce: 's' }, 16, list), [grant(0, 5n)]);
  await confirm(granted(before, [grant(1, 6n)]));
  expect(begun).toEqual(['0: 5', '1: 6']);
  await confirm(granted(before, [grant(2, 7n)]));
  expect(stay.isLost).toBe(true);
  expect(stay.termOf(1)?.signal.aborted ?? true).toBe(true);
});

test('a shard that was given up is begun again with a higher token', async () => {
  const owned = granted(newSlot({ number: 1n, nonce: 's' }, 16, list), [grant(0, 5n)]);
  await confirm(owned);
  const asked = askedFor(owned, new Set([0]));
  await confirm(asked);
  const left = givenUp(asked, new Map([[0, 5n]]));
  await confirm(left);
  await confirm(granted(left, [grant(0, 6n)]));
  expect(begun).toEqual(['0: 5', '0: 6']);
  expect(stay.isLost).toBe(false);
});

test('a confirmation over a record that was set back ends the stay', async () => {
  const before = granted(newSlot({ number: 1n, nonce: 's' }, 16, list), [grant(0, 5n)]);
  await confirm(granted(before, [grant(1, 6n)]));
  // A hint has brought the old record, and the confirmation was made from it.
  await confirm(before);
  expect(stay.isLost).toBe(true);
  expect(begun).toEqual(['0: 5', '1: 6']);
  expect(stay.onRead({ record, state: before }, stay.onReading())?.nonce).not.toBe(record.nonce);
});

test('a shard whose name is not known yet begins when it is', async () => {
  names.delete(1);
  const owned = granted(newSlot({ number: 1n, nonce: 's' }, 16, list), [
    grant(0, 5n),
    grant(1, 5n),
  ]);
  await confirm(owned);
  expect([begun, unknown]).toEqual([['0: 5'], 1]);
  names.add(1);
  await confirm(owned);
  expect(begun).toEqual(['0: 5', '1: 5']);
});

test('a shard that was asked for before its work began is given up at once', async () => {
  const owned = granted(newSlot({ number: 1n, nonce: 's' }, 16, list), [grant(0, 5n)]);
  const asked = askedFor(owned, new Set([0]));
  await confirm(asked);
  expect(begun).toEqual([]);
  const next = stay.follow({ record, state: asked }, { ...record, nonce: 'm' });
  expect(next.entries).toMatchObject([{ shard: 0, state: 'clean' }]);
});
