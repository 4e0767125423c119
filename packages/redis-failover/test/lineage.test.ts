import { describe, expect, it } from 'vitest';
import { hasAllOf, hasLess, isSameLineage, mainLineage, offsetIn } from '../src/manager/lineage.ts';
import { replication } from './support/replication.ts';

const nodes = (entries: Record<string, ReturnType<typeof replication>>) =>
  new Map(Object.entries(entries));

describe('the nodes whose data count', () => {
  it('are those of the stream on record, whoever has the larger offset', () => {
    const found = mainLineage(
      nodes({
        // Wrote on for itself after another one was published.
        old: replication({ replicationId: 'a', offset: 900 }),
        next: replication({ replicationId: 'b', formerReplicationId: 'a', offset: 500 }),
      }),
      'b',
      true,
    );
    expect([...found.keys()]).toEqual(['next']);
  });

  it('are also those that go on from the stream on record, and from those', () => {
    const found = mainLineage(
      nodes({
        third: replication({ replicationId: 'c', formerReplicationId: 'b' }),
        second: replication({ replicationId: 'b', formerReplicationId: 'a' }),
        first: replication({ replicationId: 'a' }),
        other: replication({ replicationId: 'x' }),
      }),
      'a',
      false,
    );
    expect([...found.keys()]).toEqual(['third', 'second', 'first']);
  });

  it('are the largest group when none is of the stream on record', () => {
    const known = nodes({
      empty: replication({ replicationId: 'x', offset: 9_999 }),
      one: replication({ replicationId: 'b', formerReplicationId: 'a', offset: 10 }),
      two: replication({ replicationId: 'c', formerReplicationId: 'a', offset: 20 }),
    });
    expect([...mainLineage(known, 'gone', true).keys()]).toEqual(['one', 'two']);
    expect([...mainLineage(known, null, false).keys()]).toEqual(['one', 'two']);
  });

  it('are nobody while one is missing who may have data of the stream on record', () => {
    const empty = nodes({ empty: replication({ replicationId: 'x' }) });
    expect(mainLineage(empty, 'a', false).size).toBe(0);
    expect(mainLineage(empty, 'a', true).size).toBe(1);
  });

  it('are of two groups of one size those that have more', () => {
    const known = nodes({
      less: replication({ replicationId: 'x', offset: 10 }),
      more: replication({ replicationId: 'y', offset: 20 }),
    });
    expect([...mainLineage(known, null, false).keys()]).toEqual(['more']);
  });

  it('are none of none', () => {
    expect(mainLineage(new Map(), 'a', true).size).toBe(0);
  });
});

describe('a node has all that another one had', () => {
  it('by the offset, in one stream', () => {
    const node = replication({ replicationId: 'a', offset: 100 });
    expect(hasAllOf(node, replication({ replicationId: 'a', offset: 100 }))).toBe(true);
    expect(hasAllOf(node, replication({ replicationId: 'a', offset: 101 }))).toBe(false);
  });

  it('up to where the other one began a stream of its own, whatever it wrote since', () => {
    const node = replication({ replicationId: 'a', offset: 100 });
    const promoted = { replicationId: 'b', formerReplicationId: 'a', offset: 5_000 };
    expect(hasAllOf(node, replication({ ...promoted, formerOffset: 101 }))).toBe(true);
    expect(hasAllOf(node, replication({ ...promoted, formerOffset: 102 }))).toBe(false);
  });

  it('up to where it was started anew itself', () => {
    const node = replication({ replicationId: 'n', formerReplicationId: 'a', formerOffset: 101 });
    expect(hasAllOf(node, replication({ replicationId: 'a', offset: 100 }))).toBe(true);
    expect(hasAllOf(node, replication({ replicationId: 'a', offset: 101 }))).toBe(false);
    const promoted = { replicationId: 'b', formerReplicationId: 'a' };
    expect(hasAllOf(node, replication({ ...promoted, formerOffset: 101 }))).toBe(true);
    expect(hasAllOf(node, replication({ ...promoted, formerOffset: 102 }))).toBe(false);
  });

  it('never in streams that have nothing in common', () => {
    const node = replication({ replicationId: 'a', offset: 100 });
    expect(hasAllOf(node, replication({ replicationId: 'b', offset: 1 }))).toBe(false);
  });
});

describe('two nodes are of one lineage', () => {
  it('in one stream, in one that goes on from the other, and in two that go on from one', () => {
    const a = replication({ replicationId: 'a' });
    const b = replication({ replicationId: 'b', formerReplicationId: 'a' });
    const c = replication({ replicationId: 'c', formerReplicationId: 'a' });
    expect(isSameLineage(a, a)).toBe(true);
    expect(isSameLineage(a, b)).toBe(true);
    expect(isSameLineage(b, a)).toBe(true);
    expect(isSameLineage(b, c)).toBe(true);
    expect(isSameLineage(a, replication({ replicationId: 'x' }))).toBe(false);
    expect(
      isSameLineage(replication({ replicationId: 'x' }), replication({ replicationId: 'y' })),
    ).toBe(false);
  });
});

describe('how much a node has of a stream', () => {
  it('does not count what it wrote of its own since it was promoted', () => {
    const promoted = { replicationId: 'b', formerReplicationId: 'a', formerOffset: 101 };
    expect(offsetIn(replication({ ...promoted, offset: 9_000 }), 'a')).toBe(100);
    expect(offsetIn(replication({ ...promoted, offset: 9_000 }), 'b')).toBe(9_000);
    expect(offsetIn(replication({ replicationId: 'a', offset: 50 }), 'a')).toBe(50);
    expect(offsetIn(replication({ replicationId: 'a', offset: 50 }), null)).toBe(50);
  });
});

describe('a primary has come back with less than a replica has', () => {
  const replica = replication({ role: 'replica', replicationId: 'a', offset: 100 });

  it('without its data', () => {
    const empty = replication({ replicationId: 'x', offset: 0 });
    expect(hasLess(empty, replica, 'a')).toBe(true);
    // That one copies it already.
    expect(hasLess(empty, replication({ ...replica, syncing: true }), 'a')).toBe(false);
    expect(hasLess(empty, replication({ role: 'replica', replicationId: 'x' }), 'a')).toBe(false);
  });

  it('with an older copy of them, and not with all of them', () => {
    const older = { replicationId: 'x', formerReplicationId: 'a' };
    expect(hasLess(replication({ ...older, formerOffset: 100 }), replica, 'a')).toBe(true);
    expect(hasLess(replication({ ...older, formerOffset: 101 }), replica, 'a')).toBe(false);
  });

  it('not while it reads its data, nor when it keeps them in a file that knows no streams', () => {
    const primary = replication({ replicationId: 'x' });
    expect(hasLess({ ...primary, loading: true }, replica, 'a')).toBe(false);
    expect(hasLess({ ...primary, keepsData: true }, replica, 'a')).toBe(false);
  });

  it('never while it goes on with what it wrote before', () => {
    expect(hasLess(replication({ replicationId: 'a', offset: 5 }), replica, 'a')).toBe(false);
  });

  it('not when the other one follows it already', () => {
    const primary = replication({ replicationId: 'x', formerReplicationId: 'a', formerOffset: 50 });
    const follower = { ...primary, role: 'replica' as const, formerOffset: 101 };
    expect(hasLess(primary, follower, 'a')).toBe(false);
  });
});
