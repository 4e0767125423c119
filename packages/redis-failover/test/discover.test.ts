import { describe, expect, it } from 'vitest';
import type { PrimaryRecord } from '../src/layout.ts';
import type { FirstSight } from '../src/manager/discover.ts';
import { discoverPrimary, goesOnAfterGem } from '../src/manager/discover.ts';
import { replication } from './support/replication.ts';

const primary = replication({ role: 'primary' });
const replica = replication({ role: 'replica' });
const all = ['a:1', 'b:1', 'c:1'];

function see(known: Record<string, typeof primary>, more: Partial<FirstSight> = {}): FirstSight {
  const sights = new Map(Object.entries(known));
  return {
    nodes: undefined,
    all,
    available: [...sights.keys()],
    known: sights,
    errors: new Map(),
    ...more,
  };
}

describe('the primary of a set that is managed for the first time', () => {
  it('is the only one among all', () => {
    const sight = see({ 'a:1': replica, 'b:1': primary, 'c:1': replica });
    expect(discoverPrimary(sight)).toEqual({ primary: 'b:1', isUp: true });
  });

  it('is not guessed while a node does not answer: that one may be the primary', () => {
    const errors = new Map([['c:1', new Error('it sleeps')]]);
    const sight = see({ 'a:1': primary, 'b:1': replica }, { errors });
    expect(() => discoverPrimary(sight)).toThrow(/every node must answer.*c:1: it sleeps/);
  });

  it('is not found where no node is one, with the way out', () => {
    const sight = see({ 'a:1': replica, 'b:1': replica, 'c:1': replica });
    expect(() => discoverPrimary(sight)).toThrow(
      /none of a:1, b:1, c:1 is a primary: make one of them one \(REPLICAOF NO ONE\)/,
    );
  });

  it('is not found where several are, and none of them is changed', () => {
    const sight = see({ 'a:1': primary, 'b:1': primary, 'c:1': replica });
    expect(() => discoverPrimary(sight)).toThrow(/a:1 and b:1 are primaries/);
  });

  describe('that the gem has managed', () => {
    const nodes = { master: 'a:1', slaves: ['b:1'], unavailable: ['c:1'] };

    it('is the one that `nodes` names, also while others are away, or are primaries too', () => {
      expect(discoverPrimary(see({ 'a:1': primary, 'b:1': primary }, { nodes }))).toEqual({
        primary: 'a:1',
        isUp: true,
      });
    });

    it('is replaced when it is down', () => {
      const sight = see({ 'b:1': replica, 'c:1': replica }, { nodes });
      expect(discoverPrimary(sight)).toEqual({ primary: 'a:1', isUp: false });
    });

    it('is waited for while it is up and only this manager does not reach it', () => {
      const sight = see({ 'b:1': replica }, { nodes, available: ['a:1', 'b:1'] });
      expect(() => discoverPrimary(sight)).toThrow(/a:1 does not answer this manager/);
    });

    it('is the only one that is a primary, when the one that is named is a replica now', () => {
      const sight = see({ 'a:1': replica, 'b:1': primary, 'c:1': replica }, { nodes });
      expect(discoverPrimary(sight)).toEqual({ primary: 'b:1', isUp: true });
      expect(() =>
        discoverPrimary(see({ 'a:1': replica, 'b:1': primary, 'c:1': primary }, { nodes })),
      ).toThrow(/a:1, which `nodes` names, is a replica now, and b:1 and c:1 are primaries/);
    });

    it('is replaced when it is a replica, and the only primary has not all that it has', () => {
      const stale = replication({ runId: 'b', replicationId: 'old' });
      const following = (of: string) => replication({ role: 'replica', primary: of, offset: 50 });
      const known = { 'a:1': following('c:1'), 'b:1': stale, 'c:1': following('a:1') };
      expect(discoverPrimary(see(known, { nodes }))).toEqual({ primary: 'a:1', isUp: false });
      // An operator has told all others to follow it.
      const decided = { 'a:1': following('b:1'), 'b:1': stale, 'c:1': following('b:1') };
      const found = { primary: 'b:1', isUp: true };
      expect(discoverPrimary(see(decided, { nodes }))).toEqual(found);
      const aside = { ...following('127.0.0.1:1'), isAside: true };
      expect(discoverPrimary(see({ ...decided, 'c:1': aside }, { nodes }))).toEqual(found);
    });

    it('is replaced when it is a replica by its file, and no node is a primary', () => {
      const sight = see({ 'a:1': replica, 'b:1': replica }, { nodes });
      expect(discoverPrimary(sight)).toEqual({ primary: 'a:1', isUp: false });
    });

    it('is not found when the one that is named is a replica now, and several others are primaries', () => {
      const sight = see({ 'a:1': replica, 'b:1': primary, 'c:1': primary }, { nodes });
      expect(() => discoverPrimary(sight)).toThrow(
        /is a replica now, and b:1 and c:1 are primaries/,
      );
    });

    it('is refused when it is not among the nodes of this manager', () => {
      const sight = see({ 'a:1': primary }, { nodes: { ...nodes, master: 'localhost:1' } });
      expect(() => discoverPrimary(sight)).toThrow(
        /localhost:1, which is not among the nodes of this manager \(a:1, b:1, c:1\).*spelt alike/,
      );
    });
  });
});

describe('the record after managers of the gem', () => {
  const before: PrimaryRecord = {
    ...{ term: 3, primary: 'a:1', former: 'c:1', replicationId: 'x', runId: 'run-a' },
    ...{ lineage: { x: 100 }, gemViews: false, viewMs: 2_000, manager: 'm', token: '1' },
    manualSeen: '0',
  };
  const first: PrimaryRecord = {
    ...{ term: 1, primary: 'b:1', former: null, replicationId: 'y', runId: 'run-b' },
    ...{ lineage: { y: 7 }, gemViews: true, viewMs: 1_000, manager: 'n', token: '2' },
    manualSeen: '5',
  };

  it('is of the next term, has the last primary as the former, and waits for the longer view', () => {
    const answers = replication({ replicationId: 'y', offset: 7 });
    const after = goesOnAfterGem(before, first, answers);
    const { primary, runId, gemViews, manager, manualSeen } = first;
    expect(after).toMatchObject({ primary, runId, gemViews, manager, manualSeen });
    expect(after).toMatchObject({ term: 4, former: 'a:1', viewMs: 2_000, replicationId: 'y' });
    expect(goesOnAfterGem({ ...before, primary: null }, first, answers).former).toBe('c:1');
    expect(goesOnAfterGem({ ...before, viewMs: 500 }, first, answers).viewMs).toBe(1_000);
  });

  it('has the earlier streams only as far as the primary is in them', () => {
    const branched = { formerReplicationId: 'x', formerOffset: 51 };
    const answers = replication({ replicationId: 'y', offset: 60, ...branched });
    expect(goesOnAfterGem(before, first, answers).lineage).toMatchObject({ x: 50 });
    const strange = replication({ replicationId: 'y', offset: 60 });
    expect(goesOnAfterGem(before, first, strange).lineage).not.toHaveProperty('x');
  });

  it('keeps the earlier streams while the primary does not answer', () => {
    expect(goesOnAfterGem(before, first, undefined)).toMatchObject({
      ...{ term: 4, primary: 'b:1', replicationId: 'x', lineage: { x: 100 } },
    });
    const { lineage: _, ...without } = before;
    const after = goesOnAfterGem(without, first, undefined);
    expect(after.lineage).toEqual(first.lineage);
  });
});
