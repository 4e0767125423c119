// The orders of the elected manager to nodes that have other data than the primary on record, and
// when it gives none.
import { describe, expect, it } from 'vitest';
import { pathsBelow } from '../src/layout.ts';
import { FakeNode, primary, replicaOf } from './support/move-world.ts';
import { FakeReign } from './support/reign-world.ts';

/** The primary `p:1`, and two replicas. */
const set = () =>
  new FakeReign(
    new FakeNode('p:1', primary(100)),
    new FakeNode('a:1', replicaOf('p:1', 100)),
    new FakeNode('b:1', replicaOf('p:1', 100)),
  );

const change = (world: FakeReign, node: string, more: object) => {
  world.node(node).says = { ...world.node(node).says, ...more };
};
const ordersTo = (world: FakeReign, node: string) =>
  world.orders.filter((order) => order.startsWith(`${node} `));

/** The orders to nodes before a move began. */
async function ordersBeforeMove(world: FakeReign): Promise<readonly string[]> {
  let before: readonly string[] | undefined;
  world.at.set('before revoke', () => {
    before = [...world.orders];
  });
  await world.looks(1);
  if (before === undefined) throw new Error('no move began');
  return before;
}

describe('another primary, while the record names none', () => {
  const unfinished = (node: string, more: object) => {
    const world = set();
    world.zk.znodes.delete(pathsBelow('/set').nodes);
    world.record = { ...world.record, primary: null, former: 'p:1' };
    change(world, node, { role: 'primary', primary: undefined, replicationId: 'x', ...more });
    return world;
  };

  it('is set aside before the move begins', async () => {
    const world = unfinished('a:1', { offset: 500 });
    expect(await ordersBeforeMove(world)).toEqual(['a:1 → 127.0.0.1:1']);
  });

  it('is left to the move where it is the primary of the last term', async () => {
    const world = unfinished('p:1', { offset: 5, runId: 'anew' });
    expect(await ordersBeforeMove(world)).toEqual([]);
  });

  it('is left to the move where the operator has chosen `rejoin: always`', async () => {
    const world = unfinished('a:1', { offset: 500 });
    world.rejoin = 'always';
    expect(await ordersBeforeMove(world)).toEqual([]);
  });
});

describe('a primary that came back as another process', () => {
  it('lacks what its replicas have: they are not set aside, and one of them takes over', async () => {
    const world = set();
    change(world, 'p:1', { runId: 'anew', replicationId: 'n', offset: 5 });
    expect(await ordersBeforeMove(world)).toEqual(['p:1 → 127.0.0.1:1']);
    expect(world.record).toMatchObject({ primary: 'a:1', term: 2 });
  });

  it('goes on where no other node is there, although the position of its data is unknown', async () => {
    const world = new FakeReign(new FakeNode('p:1', primary(100)));
    change(world, 'p:1', { runId: 'anew', hasBacklog: false });
    await world.looks(2);
    expect(world.orders).toEqual([]);
    expect(world.record).toMatchObject({ primary: 'p:1', term: 1, runId: 'anew' });
  });
});

describe('a node that follows another one', () => {
  it('is left alone while the primary loads its data', async () => {
    const world = set();
    change(world, 'a:1', { primary: 'z:1', linkUp: false });
    change(world, 'p:1', { loading: true });
    await world.looks(2);
    expect(world.orders).toEqual([]);
    change(world, 'p:1', { loading: false });
    await world.looks(1);
    expect(world.node('a:1').says.primary).toBe('p:1');
  });
});

describe('with `rejoin: always`', () => {
  it('a replica that has more is not told again to follow the primary', async () => {
    const world = set();
    world.rejoin = 'always';
    change(world, 'a:1', { offset: 150, linkUp: false });
    await world.looks(2);
    expect(ordersTo(world, 'a:1')).toEqual([]);
    expect(world.told.filter(({ type }) => type === 'reconciled')).toEqual([]);
  });
});

describe('a term', () => {
  it('that ends while the nodes are asked: nothing more is done', async () => {
    const world = set();
    const path = world.ask('p:1');
    world.whenAsked = (node) => {
      if (node !== 'a:1') return;
      world.endTerm();
      throw new Error('the connection was closed');
    };
    await world.looks(2);
    expect(world.request(path).outcome).toBeUndefined();
    expect(world.positionsWritten).toBe(0);
  });

  it('changes nothing before the reports of the other managers are read', async () => {
    const world = set();
    let read = () => {};
    world.hasRead = new Promise((resolve) => {
      read = resolve;
    });
    const before = [...world.zk.znodes.keys()];
    const term = world.looks(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect([...world.zk.znodes.keys()]).toEqual(before);
    expect(world.told).toEqual([]);
    read();
    await term;
    expect(world.told).not.toEqual([]);
  });
});
