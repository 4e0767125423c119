/** Managers with different lists. A node's data count also for managers that do not list it. */
import { describe, expect, it } from 'vitest';
import type { Report } from '../src/layout.ts';
import type { Situation } from '../src/manager/decide.ts';
import { decide } from '../src/manager/decide.ts';
import { discoverPrimary, firstRecord } from '../src/manager/discover.ts';
import { foreignNodes, oncePerProcess } from '../src/manager/node-lists.ts';
import type { NodeAddress } from '../src/node-address.ts';
import { FakeNode, FakeWorld, primary, replicaOf } from './support/move-world.ts';
import { replication } from './support/replication.ts';

/** F is the primary. The manager lists F and A, and others also list B. */
function withForeign(ofA: number, ofB: number): FakeWorld {
  const world = new FakeWorld(
    new FakeNode('F', primary(100), ['all']),
    new FakeNode('A', replicaOf('F', ofA), ['of A']),
    new FakeNode('B', replicaOf('F', ofB), ['of B']),
  );
  world.forget('B');
  return world;
}
const down = { reason: 'down', available: ['A', 'B'] } as const;

describe('the nodes to ask', () => {
  const report = (available: readonly string[], unavailable: readonly string[] = []): Report => ({
    available: Object.fromEntries(available.map((node) => [node, 0.001])),
    unavailable,
  });

  it('are those of the reports of all managers, reached or not', () => {
    const reports = new Map([
      ['one', report(['a:1', 'b:1'], ['d:1'])],
      ['two', report(['c:1'], ['b:1'])],
    ]);
    expect(foreignNodes(['a:1', 'b:1'], reports)).toEqual(['c:1', 'd:1']);
  });

  it('are each one Redis: of several names the own one counts, or else the first', () => {
    const [x, y] = [replication({ runId: 'x' }), replication({ runId: 'y' })];
    const known = new Map([
      ['alias:1', x],
      ['a:1', x],
      ['one:1', y],
      ['two:1', y],
    ]);
    expect([...oncePerProcess(known, ['a:1', 'b:1']).keys()]).toEqual(['a:1', 'one:1']);
  });
});

describe('a node that only other managers list', () => {
  it('and that has more keeps every node of the list from being promoted, and the operator is told', async () => {
    const world = withForeign(90, 100);
    world.node('F').isSilent = true;
    const list = /B has data that no node of the manager m has \(10 bytes.*list.*lacks it \(F, A\)/;
    await expect(world.move(down)).rejects.toThrow(list);
    for (let attempt = 0; attempt < 9; attempt += 1) {
      await expect(world.move({ ...down, reason: 'unfinished' })).rejects.toThrow(list);
    }
    expect(world.record.primary).toBeNull();
    expect(world.primaries).toEqual(['F']);
  });

  it('does so too where no node of the list can be promoted', async () => {
    const world = withForeign(90, 100);
    world.node('F').isSilent = true;
    await world.move(down).catch(() => {});
    world.node('A').says = replication({ runId: 'run-A', replicationId: 'x', isEmpty: true });
    await expect(world.move({ ...down, reason: 'unfinished' })).rejects.toThrow(
      /B has data.*incumbent-redis keep NODE/,
    );
  });

  it('does not begin a move that no node of the list can end', async () => {
    const world = withForeign(90, 100);
    world.node('F').isSilent = true;
    world.node('A').isSilent = true;
    await expect(world.move(down)).rejects.toThrow(/nobody can take over/);
    expect(world.record.primary).toBe('F');
  });

  it('is neither promoted nor told to copy where it has as much', async () => {
    const world = withForeign(100, 100);
    world.node('F').isSilent = true;
    // It would be the better choice if it were on the list.
    world.node('B').says = { ...world.node('B').says, priority: 1 };
    await expect(world.move(down)).resolves.toMatchObject({ primary: 'A' });
    expect(world.node('B').says.primary).toBe('F');
    expect(world.published).toMatchObject({ master: 'A', slaves: [], unavailable: ['F'] });
  });

  it('is waited for like others that are up and do not answer', async () => {
    const world = withForeign(100, 100);
    world.node('F').isSilent = true;
    world.node('B').isSilent = true;
    await expect(world.move(down)).rejects.toThrow(/B may have more of the data/);
  });

  it('is waited for as long as usual where no node of the list has all that the primary had', async () => {
    const world = withForeign(90, 100);
    world.node('F').isSilent = true;
    world.node('B').isSilent = true;
    world.position = { stream: 'a', offset: 100 };
    await expect(world.move({ ...down, available: ['A'] })).rejects.toThrow(
      /A cannot have all.*B may have it/,
    );
  });

  it('keeps an empty node from being taken for the first one', async () => {
    const nothing = { replicationId: 'e', isEmpty: true, hasWritten: false } as const;
    const world = withForeign(0, 0);
    for (const node of ['F', 'A']) {
      world.node(node).says = replication({ ...nothing, runId: `run-${node}` });
    }
    world.node('B').isSilent = true;
    await expect(world.move({ reason: 'lost-data', available: ['F', 'A'] })).rejects.toThrow(
      /nobody can take over/,
    );
  });

  it('and that has more lets the primary go on that was asked to give way', async () => {
    const world = withForeign(100, 100);
    world.node('B').says = { ...world.node('B').says, offset: 120 };
    await expect(world.move({ reason: 'request', target: 'A' })).rejects.toThrow(
      /A lacks what B has.*F goes on/,
    );
    expect(world.record.primary).toBe('F');
  });

  it('does not count where an operator has said whose data do', async () => {
    const world = withForeign(90, 100);
    world.node('F').isSilent = true;
    await expect(world.move({ ...down, reason: 'keep', target: 'A' })).resolves.toMatchObject({
      primary: 'A',
    });
    expect(world.node('B').keys).toEqual(['of B']);
  });

  it('and was the primary is given back when it has all, although this manager does not list it', async () => {
    const world = withForeign(90, 100);
    world.forget('F');
    world.record = { ...world.record, primary: null, former: 'F' };
    const available = ['F', 'A', 'B'];
    await expect(world.move({ reason: 'unfinished', available })).resolves.toMatchObject({
      primary: 'F',
    });
  });

  it('and was the primary counts as one of the list: it is promoted, or told to copy', async () => {
    const aside = { isAside: true, linkUp: false, primary: '127.0.0.1:1' } as const;
    for (const [ofF, chosen] of [
      [100, 'F'],
      [80, 'A'],
    ] as const) {
      const world = withForeign(90, 80);
      world.forget('F');
      world.record = { ...world.record, primary: null, former: 'F' };
      world.node('F').says = replication({ ...replicaOf('F', ofF), ...aside, runId: 'anew' });
      await expect(world.move({ reason: 'unfinished' })).resolves.toMatchObject({
        primary: chosen,
      });
      if (chosen === 'A') expect(world.node('F').says.primary).toBe('A');
    }
  });

  it('is not told to follow itself where others spell the former primary in another way', async () => {
    const world = new FakeWorld(
      new FakeNode('F', primary(100), ['all']),
      new FakeNode('alias', { ...primary(100), runId: 'run-F' }, ['all']),
    );
    world.forget('F');
    world.record = { ...world.record, primary: null, former: 'F' };
    const available = ['F', 'alias'];
    await expect(world.move({ reason: 'unfinished', available })).resolves.toMatchObject({
      primary: 'F',
    });
    expect(world.node('F').says.role).toBe('primary');
    expect(world.node('alias').says.isAside).toBe(false);
  });
});

describe('the decision, where another manager lists one node more', () => {
  const [p, a, b] = ['p:1', 'a:1', 'b:1'] as [NodeAddress, NodeAddress, NodeAddress];
  const record = {
    ...firstRecord(p, replication({ offset: 100 }), {
      ...{ viewMs: 1_000, gemViews: false, manager: 'm', token: '1', manualSeen: '0' },
    }),
    primary: p,
  };
  const replica = (offset: number) =>
    replication({ runId: 'x', role: 'replica', primary: p, offset });
  const situation = (more: Partial<Situation>): Situation => ({
    ...{ record, nodes: [p, a], others: [b], position: undefined, returnedForMs: 0 },
    ...{ known: new Map(), isUp: () => true },
    ...more,
  });
  const anew = { runId: 'anew', hasWritten: false, replicationId: 'n', formerReplicationId: 'a' };

  it('is to move from a primary that was started anew, and lacks what that node has', () => {
    const behind = replication({ ...anew, offset: 60, formerOffset: 61 });
    const known = new Map([
      [p, behind],
      [a, replica(50)],
      [b, replica(100)],
    ]);
    expect(decide(situation({ known }))).toEqual({ do: 'move', reason: 'lost-data' });
  });

  it('is to wait for that node, if it does not answer', () => {
    const returned = replication({ ...anew, offset: 100, formerOffset: 101 });
    const known = new Map([
      [p, returned],
      [a, replica(100)],
    ]);
    expect(decide(situation({ known }))).toEqual({ do: 'wait', missing: [b] });
  });

  it('is not to follow that node, if it was promoted by hand', () => {
    const promoted = { replicationId: 'of b', formerReplicationId: 'a', formerOffset: 101 };
    const known = new Map([
      [a, { ...replica(100), primary: b }],
      [b, replication({ ...promoted, runId: 'b', offset: 120 })],
    ]);
    const isUp = (node: NodeAddress) => node !== p;
    expect(decide(situation({ known, isUp }))).toEqual({ do: 'move', reason: 'down' });
  });

  it('is to keep a primary that is judged down, and that only that node could replace', () => {
    const known = new Map([
      [p, replication({ offset: 120 })],
      [b, replica(120)],
    ]);
    const isUp = (node: NodeAddress) => node !== p;
    expect(decide(situation({ known, isUp }))).toEqual({ do: 'keep' });
  });

  it('is, at first sight, that there is no primary where that node is one, too', () => {
    const sight = (known: Record<string, ReturnType<typeof replication>>) => () =>
      discoverPrimary({
        ...{ nodes: undefined, all: [p, a], available: [p, a], errors: new Map() },
        known: new Map(Object.entries(known)),
      });
    const other = replication({ runId: 'b' });
    expect(sight({ [p]: replication(), [a]: replica(1), [b]: other })).toThrow(/p:1 and b:1/);
    expect(sight({ [p]: replica(1), [a]: replica(1), [b]: other })).toThrow(/none of p:1, a:1/);
  });
});
