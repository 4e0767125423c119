import type { LeaseRecord, LeaseStore, Reading } from 'incumbent/backend';
import { emptyLeaseRecord } from 'incumbent/internal';
import { beforeEach, expect, test } from 'vitest';
import { encodeHead } from '../src/codec.ts';
import { extendedStore } from '../src/extended-store.ts';
import { HeadRecord, ListDiffersError } from '../src/head.ts';
import type { ShardList } from '../src/slot.ts';

const own: ShardList = { count: 4, digest: 0n };
const other: ShardList = { count: 8, digest: 0n };
const { signal } = new AbortController();

let head: HeadRecord;
/** The record, as reads of it are answered. */
let stored: Reading;
/** Reads are answered after it. */
let gate: Promise<void>;
let lease: LeaseStore;

beforeEach(() => {
  head = new HeadRecord('queues', own);
  gate = Promise.resolve();
  stored = { record: recordOf(1n, own, 5n), version: 1 };
  lease = extendedStore(
    {
      read: () => {
        const reading = stored;
        return gate.then(() => reading);
      },
      swap: async (expected, record) => {
        if (expected !== stored.version) return { outcome: 'conflict' };
        stored = { record, version: Number(expected) + 1 };
        return { outcome: 'ok', version: stored.version };
      },
    },
    head,
  );
});

function recordOf(token: bigint, list: ShardList, top = 0n): LeaseRecord {
  const state = { slots: 16, list, floors: new Map([[1, top]]), top, numbers: 0, pins: new Map() };
  const shards = Buffer.from(encodeHead(state)).toString('base64');
  return { ...emptyLeaseRecord('queues', `n${token}`, 15_000), token, shards };
}

/** By a candidate with the own list. */
async function win(): Promise<void> {
  const { record, version } = await lease.read(signal);
  const token = (record?.token ?? 0n) + 1n;
  const holding = { candidate: { id: 'a' } } as LeaseRecord['holding'];
  const next = { ...record!, nonce: `m${token}`, token, holding };
  expect(await lease.swap(version, next, signal)).toMatchObject({ outcome: 'ok' });
}

test('a read that was sent before a write and is answered after it sets nothing back', async () => {
  let answer = () => {};
  gate = new Promise((resolve) => {
    answer = resolve;
  });
  const early = lease.read(signal);
  gate = Promise.resolve();
  stored = { record: recordOf(2n, own, 9n), version: 2 };
  await win();
  expect(head.head?.top).toBe(9n);
  answer();
  await early;
  expect(head.head?.top).toBe(9n);
});

test('a list of others that was found abandoned is replaced, but not one that was written since', async () => {
  stored = { record: recordOf(1n, other), version: 1 };
  await expect(lease.read(signal)).rejects.toThrow(ListDiffersError);
  head.takeOver();
  // Another process with that list has won meanwhile.
  stored = { record: recordOf(2n, other), version: 2 };
  await expect(lease.read(signal)).rejects.toThrow(ListDiffersError);
  head.takeOver();
  await win();
  expect(head.head?.list).toEqual(own);
});
