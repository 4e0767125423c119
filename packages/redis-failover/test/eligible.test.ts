import { expect, test } from 'vitest';
import { eligible } from '../src/manager/choose.ts';
import { firstRecord } from '../src/manager/discover.ts';
import type { NodeAddress } from '../src/node-address.ts';
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
