// The writes of the elected manager, on a ZooKeeper that is played.
import type { Term } from 'incumbent';
import type { ZooKeeperGuard } from 'incumbent/zookeeper';
import { expect, test } from 'vitest';
import type { PrimaryRecord } from '../src/layout.ts';
import { decodeNodes, decodePosition, decodePrimary, pathsBelow } from '../src/layout.ts';
import { Keeper } from '../src/manager/keeper.ts';
import type { ZooKeeperClient } from '../src/zookeeper-client.ts';
import { FakeZooKeeper } from './support/reign-world.ts';

const paths = pathsBelow('/set');
const nodes = { master: 'p:1', slaves: ['a:1'], unavailable: [] };
const record: PrimaryRecord = {
  ...{ term: 1, primary: 'p:1', former: null, replicationId: 'a', runId: 'r', gemViews: false },
  ...{ viewMs: 1_000, manager: 'm', token: '1', manualSeen: '0' },
};

function stage() {
  const zk = new FakeZooKeeper();
  zk.put('/place', '');
  const term = {
    signal: new AbortController().signal,
    guard: { path: '/place', version: 0 },
    assertLeading: () => {},
  } as unknown as Term<ZooKeeperGuard>;
  const keeper = new Keeper(zk.client() as unknown as ZooKeeperClient, paths, term, {});
  const text = (path: string) => zk.znodes.get(path)?.text;
  return { zk, keeper, text };
}

test('creates what is not there, and writes over it from then on', async () => {
  const { keeper, text } = stage();
  await keeper.write({ record, nodes });
  expect(decodePrimary('', text(paths.primary) ?? '')).toEqual(record);
  expect(decodeNodes('', text(paths.nodes) ?? '')).toEqual(nodes);
  const next = { ...record, term: 2 };
  const others = { ...nodes, slaves: [], unavailable: ['a:1'] };
  await keeper.write({ record: next });
  await keeper.write({ nodes: others });
  expect(decodePrimary('', text(paths.primary) ?? '')).toEqual(next);
  expect(decodeNodes('', text(paths.nodes) ?? '')).toEqual(others);
  expect(await keeper.read()).toMatchObject({ record: next, nodes: others });
  keeper.forget();
  expect(await keeper.read()).toMatchObject({ record: next, nodes: others });
});

test('takes `nodes` away, also where there are none', async () => {
  const { keeper, text } = stage();
  await keeper.write({ record, nodes: null });
  await keeper.write({ nodes });
  await keeper.write({ nodes: null });
  expect(text(paths.nodes)).toBeUndefined();
  expect((await keeper.read()).nodes).toBeUndefined();
  await keeper.write({ record: { ...record, term: 2 }, nodes: null });
  expect((await keeper.read()).record?.term).toBe(2);
});

test('writes nothing over what another one has written, nor after its term', async () => {
  const { zk, keeper, text } = stage();
  await keeper.write({ record, nodes });
  zk.put(paths.primary, text(paths.primary) ?? '');
  await expect(keeper.write({ record: { ...record, term: 2 } })).rejects.toThrow();
  // Now it reads again.
  await keeper.write({ record: { ...record, term: 3 } });
  zk.put('/place', '');
  await expect(keeper.write({ record: { ...record, term: 4 } })).rejects.toThrow();
  expect(decodePrimary('', text(paths.primary) ?? '').term).toBe(3);
});

test('creates the position and writes over it, once for each', async () => {
  const { zk, keeper, text } = stage();
  expect(await keeper.position()).toBeUndefined();
  for (const offset of [1, 2, 2]) await keeper.writePosition({ stream: 'a', offset });
  expect(decodePosition('', text(paths.position) ?? '')).toEqual({ stream: 'a', offset: 2 });
  expect(zk.znodes.get(paths.position)?.version).toBe(1);
  expect(await keeper.position()).toEqual({ stream: 'a', offset: 2 });
  const other = new Keeper(
    zk.client() as unknown as ZooKeeperClient,
    ...([
      paths,
      { signal: new AbortController().signal } as unknown as Term<ZooKeeperGuard>,
    ] as const),
    {},
  );
  expect(await other.position()).toEqual({ stream: 'a', offset: 2 });
  zk.put(paths.position, 'something else');
  const third = new Keeper(
    zk.client() as unknown as ZooKeeperClient,
    ...([
      paths,
      { signal: new AbortController().signal } as unknown as Term<ZooKeeperGuard>,
    ] as const),
    {},
  );
  expect(await third.position()).toBeUndefined();
});
