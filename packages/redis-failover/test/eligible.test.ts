import { expect, test } from 'vitest';
import { eligible } from '../src/manager/choose.ts';
import { firstRecord } from '../src/manager/discover.ts';
import type { NodeAddress } from '../src/node-address.ts';
import type { Replication } from '../src/redis/node-connection.ts';
import { replication } from './support/replication.ts';

const record = firstRecord('p:1' as NodeAddress, replication(), {
  ...{ viewMs: 1_000, gemViews: false, manager: 'm', token: '1', manualSeen: '0' },
});

test('a replica that Redis has emptied is not promoted, whatever offset it still tells', () => {
  const replica = replication({ role: 'replica', primary: 'p:1', linkUp: false });
  const emptied = { ...replica, offset: 200, linkOffset: 1, isEmpty: true };
  const stale = { ...replica, offset: 100, linkOffset: 100 };
  const known = new Map([
    ['a:1' as NodeAddress, emptied],
    ['b:1' as NodeAddress, stale],
  ]);
  const world = { nodes: [...known.keys()] };
  const fit = eligible(known, record, { reason: 'down', target: undefined }, world);
  expect([...fit.keys()]).toEqual(['b:1']);
});

test('where all data are in one unknown stream, only the furthest is promoted, and never one set aside', () => {
  const at = (offset: number, more: Partial<Replication> = {}) =>
    replication({ replicationId: 'x', role: 'replica', primary: 'p:1', offset, ...more });
  const fitOf = (known: Map<NodeAddress, Replication>) =>
    [...eligible(known, record, { reason: 'down', target: undefined }, { nodes }).keys()].join();
  const [a, b] = ['a:1', 'b:1'] as [NodeAddress, NodeAddress];
  const nodes = [a, b];
  const both = (first: Replication, second: Replication) =>
    fitOf(
      new Map([
        [a, first],
        [b, second],
      ]),
    );
  expect(both(at(10), at(20))).toBe('b:1');
  expect(both(at(10), at(20, { isAside: true }))).toBe('');
  expect(both(at(10), at(20, { replicationId: 'y' }))).toBe('');
  expect(fitOf(new Map([[a, at(10)]]))).toBe('');
});
