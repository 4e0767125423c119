import { describe, expect, test } from 'vitest';
import { missingFrom, StreamNotes } from '../src/manager/join.ts';
import type { Lineage } from '../src/manager/lineage.ts';
import { FakeNode, FakeWorld, primary } from './support/move-world.ts';
import { replication } from './support/replication.ts';

describe('a primary that joins as a replica', () => {
  const set = () =>
    new FakeWorld(
      new FakeNode('P', primary(100), ['k1']),
      new FakeNode('X', primary(100), ['k1', 'own']),
    );

  test('is quarantined with a write that arrives between the question and the order', async () => {
    const world = set();
    world.node('X').underWay = 5;
    expect(await world.join('X', 'P')).toBe('quarantined');
    expect(world.node('X')).toMatchObject({
      ...{ keys: ['k1', 'own'], says: { isAside: true, offset: 105 } },
    });
  });

  test('is told of once while it has the same data, and again when it has other data', async () => {
    const world = set();
    const X = world.node('X');
    X.says = { ...X.says, offset: 110 };
    await world.join('X', 'P');
    await world.join('X', 'P');
    const told = { type: 'quarantined', node: 'X', missing: '10 bytes of writes after 100' };
    expect(world.told).toMatchObject([told]);
    X.says = { ...X.says, offset: 120 };
    await world.join('X', 'P');
    expect(world.told).toMatchObject([told, { missing: '20 bytes of writes after 100' }]);
  });
});

test('what the primary lacks of a node is said in words', () => {
  const own = replication({ offset: 100 });
  const lineage = new Map([['a', 100]]);
  const lacks = (more: Parameters<typeof replication>[0]) =>
    missingFrom(own, lineage, replication(more));
  expect(lacks({ offset: 103 })).toBe('3 bytes of writes after 100');
  expect(lacks({ hasBacklog: false })).toBe('it took writes that its offset does not count');
  expect(lacks({ role: 'replica', isAside: true, hasBacklog: false, hasWritten: false })).toBe(
    'it took writes that its offset does not count',
  );
  expect(lacks({ replicationId: 'x' })).toBe('nobody else knows its stream of writes (x)');
});

test('a stream is raised in the record only if that changes the record', async () => {
  const written: Lineage[] = [];
  const notes = new StreamNotes(new Map([['a', 100]]), async (lineage) => {
    written.push(lineage);
  });
  await notes.include(replication({ offset: 100 }));
  await notes.include(replication({ replicationId: 'x', offset: 900 }));
  expect(written).toEqual([]);
  await notes.include(replication({ offset: 114 }));
  await notes.include(replication({ offset: 114 }));
  expect(written).toEqual([new Map([['a', 114]])]);
});
