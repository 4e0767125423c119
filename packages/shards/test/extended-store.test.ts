import type { LeaseRecord } from 'incumbent/backend';
import { emptyLeaseRecord } from 'incumbent/internal';
import { SimulatedClock, SimulatedLeaseStore } from 'incumbent/testing';
import { beforeEach, expect, test } from 'vitest';
import type { Extended } from '../src/extended-store.ts';
import { extendedStore } from '../src/extended-store.ts';

const record: LeaseRecord = { ...emptyLeaseRecord('queues/1', 'n', 15_000), shards: 'first' };

let store: SimulatedLeaseStore;
let written: Extended<string>[];
let isLost: boolean;

beforeEach(() => {
  store = new SimulatedLeaseStore({ clock: new SimulatedClock() });
  store.put('queues/1', record);
  written = [];
  isLost = false;
});

function open(way = store.connect()) {
  return extendedStore<string>(way.open('queues/1'), {
    decode: (read) => read?.shards ?? '',
    encode: (state) => state,
    follow: ({ state }) => `${state}, next`,
    onWritten: (state) => written.push(state),
    get isLost() {
      return isLost;
    },
  });
}

const { signal } = new AbortController();

test('the lease race sees no shards, and its writes carry them on', async () => {
  const lease = open();
  const { record: read, version } = await lease.read(signal);
  expect(read).not.toHaveProperty('shards');
  expect(await lease.swap(version, { ...read!, nonce: 'm' }, signal)).toMatchObject({
    outcome: 'ok',
  });
  expect(store.record('queues/1')).toMatchObject({ nonce: 'm', shards: 'first, next' });
  expect(written).toMatchObject([{ state: 'first, next' }]);
});

test('a record that was set back is not written any more', async () => {
  const lease = open();
  const { version } = await lease.read(signal);
  isLost = true;
  expect(await lease.swap(version, record, signal)).toEqual({ outcome: 'conflict' });
  expect(store.record('queues/1')).toBe(record);
});

test('an answer that comes after its caller has given up counts as none', async () => {
  const way = store.connect();
  const lease = open(way);
  const { version } = await lease.read(signal);
  const caller = new AbortController();
  way.hold('swap');
  const swapped = lease.swap(version, record, caller.signal);
  caller.abort();
  way.release('swap');
  await expect(swapped).rejects.toThrow();
  expect(written).toEqual([]);
});
