import { describe, expect, test } from 'vitest';
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

describe('where no node that answers has anything of the last term, the one to promote', () => {
  const [p, a, b] = ['p:1', 'a:1', 'b:1'] as [NodeAddress, NodeAddress, NodeAddress];
  const nodes = [p, a, b];
  /**
   * The former primary was in `z` up to 50, then in `y` up to 80. The primary on record writes `a`.
   */
  const later = { ...record, primary: null, former: p, lineage: { z: 50, y: 80, a: 100 } };
  const fitOf = (states: Readonly<Record<string, Partial<Replication>>>) => {
    const known = new Map(
      Object.entries(states).map(([node, state]) => [
        `${node}:1` as NodeAddress,
        replication({ role: 'replica', primary: 'x:1', linkUp: false, runId: node, ...state }),
      ]),
    );
    return [...eligible(known, later, { reason: 'down', target: undefined }, { nodes }).keys()];
  };
  const aside = { isAside: true, primary: '127.0.0.1:1' } as const;
  const fromAof = { replicationId: 'f', offset: 7, ...aside };

  test('is the one with the latest of the earlier streams, whatever its offset', () => {
    expect(fitOf({ a: { replicationId: 'z', offset: 900 }, b: { replicationId: 'y' } })).toEqual([
      b,
    ]);
  });

  test('is the primary of the last term, if it came back with data of unknown position, and no other node has any', () => {
    const empty = { replicationId: 'e', isEmpty: true, hasWritten: false };
    expect(fitOf({ p: fromAof, a: empty })).toEqual([p]);
    // Its replica has copied it meanwhile.
    const copied = { replicationId: 'f', offset: 9 };
    expect(fitOf({ p: fromAof, a: empty, b: copied })).toEqual([p]);
  });

  test('is none, if the primary may have all of it, or less than a node in an earlier stream', () => {
    expect(fitOf({ p: fromAof, a: { replicationId: 'z' } })).toEqual([]);
  });

  test('is none, if yet another node has data of unknown position', () => {
    const other = { replicationId: 'g', offset: 9 };
    expect(fitOf({ p: fromAof, a: { replicationId: 'z' }, b: other })).toEqual([]);
  });

  test('is the primary of the last term also where all others are away, once that is decided', () => {
    const known = new Map([[p, replication({ ...fromAof, role: 'replica', linkUp: false })]]);
    const fit = (reason: 'lost-role' | 'down', more: Map<NodeAddress, Replication> = known) => [
      ...eligible(more, later, { reason, target: undefined }, { nodes }).keys(),
    ];
    expect(fit('lost-role')).toEqual([p]);
    expect(fit('down')).toEqual([p]);
    const beside = replication({ replicationId: 'g', role: 'replica', ...aside });
    expect(fit('lost-role', new Map([...known, [a, beside]]))).toEqual([p]);
    expect(fit('down', new Map([...known, [a, beside]]))).toEqual([]);
    // No manager has decided for it yet.
    const { replicationId, offset } = fromAof;
    const following = replication({ replicationId, offset, role: 'replica', primary: 'x:1' });
    const both = new Map([
      [p, following],
      [a, beside],
    ]);
    expect(fit('lost-role', both)).toEqual([]);
  });

  test('is one without data only if all nodes answer', () => {
    const empty = { replicationId: 'e', isEmpty: true, hasWritten: false };
    expect(fitOf({ a: empty, b: empty })).toEqual([]);
    expect(fitOf({ p: empty, a: empty, b: empty })).toEqual([p, a, b]);
  });

  test('is none, if one that is set aside has more', () => {
    const older = { replicationId: 'z', offset: 14 };
    expect(fitOf({ a: older, b: { replicationId: 'z', offset: 40, ...aside } })).toEqual([]);
    expect(fitOf({ a: older, b: { replicationId: 'z', offset: 14, ...aside } })).toEqual([a]);
  });

  test('is one with anything of it, even if another has more of an older stream', () => {
    expect(fitOf({ a: { offset: 60 }, b: { replicationId: 'y', offset: 900 } })).toEqual([a]);
  });
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
