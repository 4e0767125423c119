import { expect, test } from 'vitest';
import type { PrimaryRecord } from '../src/layout.ts';
import { decodePrimary, encodePrimary } from '../src/layout.ts';
import { discard, isDiscarded } from '../src/manager/discard.ts';
import type { Hands } from '../src/manager/hands.ts';
import type { Change, Keeper } from '../src/manager/keeper.ts';
import type { NodeAddress } from '../src/node-address.ts';
import type { Replication } from '../src/redis/node-connection.ts';
import { replication } from './support/replication.ts';

const record: PrimaryRecord = {
  ...{ term: 3, primary: 'p:1', former: 'n:1', replicationId: 'a', runId: 'run-p' },
  ...{ lineage: { a: 100 }, gemViews: false, viewMs: 1_000, manager: 'm', token: '1' },
  manualSeen: '0',
};
const aside = replication({
  runId: 'run-n',
  role: 'replica',
  primary: '127.0.0.1:1',
  isAside: true,
});

/** The orders to a set, in their sequence. */
function world(primary: Partial<Replication>, ofRecord: PrimaryRecord = record) {
  const done: string[] = [];
  let written = ofRecord;
  const says = new Map([
    ['p:1', replication({ runId: 'run-p', offset: 120, ...primary })],
    ['n:1', aside],
  ]);
  const hands = {
    replication: async (node: NodeAddress) => says.get(node),
    makeReplica: async (node: NodeAddress, of: NodeAddress) =>
      void done.push(`${node} copies ${of}`),
  } as unknown as Hands;
  const keeper = {
    write: async ({ record: next }: Change) => {
      if (next !== undefined) written = next;
      done.push('noted');
    },
  } as unknown as Keeper;
  return { done, record: () => written, act: () => discard('n:1', ofRecord, { hands, keeper }) };
}

test('the record says that a node may copy before the node is told to', async () => {
  const { act, done, record: written } = world({});
  expect(await act()).toBe('p:1');
  expect(done).toEqual(['noted', 'n:1 copies p:1']);
  expect(decodePrimary('primary', encodePrimary(written()))).toEqual(written());
  expect(isDiscarded(written(), 'n:1', { runId: 'run-n', primary: 'p:1' })).toBe(true);
});

test.each<[string, Partial<Replication>]>([
  ['another process of that node', { runId: 'run-2', primary: 'p:1' }],
  ['a node that follows another one', { runId: 'run-n', primary: 'q:1' }],
])('it says nothing of %s', async (_, more) => {
  const { act, record: written } = world({});
  await act();
  expect(isDiscarded(written(), 'n:1', { ...aside, ...more })).toBe(false);
});

test.each<[string, Partial<Replication>, Partial<PrimaryRecord>, RegExp]>([
  ['runs in another process', { runId: 'run-2' }, {}, /started anew, and nobody has judged/],
  ['is loading', { loading: true }, {}, /started anew, and nobody has judged/],
  ['is a replica', { role: 'replica' }, {}, /no primary at the moment/],
  ['is nobody', {}, { primary: null }, /no primary at the moment/],
  ['is the node itself', {}, { primary: 'n:1' }, /n:1 is the primary/],
])('is refused while the primary on record %s', async (_, says, more, message) => {
  const { act, done } = world(says, { ...record, ...more });
  await expect(act()).rejects.toThrow(message);
  expect(done).toEqual([]);
});
