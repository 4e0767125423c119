import { MisuseError, TermEndedError } from 'incumbent';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { electionOf } from '../src/following.ts';
import type { Shards, ShardTerm } from '../src/index.ts';
import { createShards, readShards } from '../src/index.ts';
import { Group } from './group.ts';

let group: Group;
beforeEach(() => {
  group = new Group();
});
afterEach(() => group.end());

/** A process without work, which only asks. */
function client(): Shards<number> {
  const { store, clock, members } = group;
  const { backend } = store.connect();
  const asks = createShards({ ...{ name: 'queues', backend, clock }, shards: 12 });
  members.set('client', asks);
  return asks;
}
const termOf = (id: string, shard: number): ShardTerm<number> =>
  group.members.get(id)!.term(shard)!;
/** As the router sees the owner of a shard. */
async function seen(asks: Shards<number>, shard: number) {
  const [owner, view] = await Promise.all([asks.owner(shard), electionOf(asks, shard).leader()]);
  return { owner: owner?.ready, router: view.ready };
}

test('an owner is ready when it says so, shard by shard', async () => {
  group.join('a', { ready: 'manual' });
  const asks = client();
  await group.clock.advance('30s');
  expect(await seen(asks, 0)).toEqual({ owner: false, router: false });
  const term = termOf('a', 0);
  expect([term.isLeading(), term.isReady]).toEqual([true, false]);

  const said = term.ready();
  expect(term.isReady).toBe(true);
  await group.clock.advance('1s');
  await said;
  await term.ready();
  await group.clock.advance('1s');
  expect(await seen(asks, 0)).toEqual({ owner: true, router: true });
  expect(await seen(asks, 1)).toEqual({ owner: false, router: false });
  const { backend } = group.store.connect();
  const status = await readShards({ name: 'queues', backend, clock: group.clock });
  expect([status?.owner(0)?.ready, status?.owner(1)?.ready]).toEqual([true, false]);
});

test('readiness goes with its term: the next owner says so itself', async () => {
  const a = group.join('a', { ready: 'manual' });
  await group.clock.advance('30s');
  for (const shard of a.owned()) void termOf('a', shard).ready();
  const b = group.join('b', { ready: 'manual' });
  const asks = client();
  await group.clock.advance('1m');
  const [moved] = b.owned();
  const [kept] = a.owned();
  expect(await seen(asks, moved!)).toEqual({ owner: false, router: false });
  expect(await seen(asks, kept!)).toEqual({ owner: true, router: true });
});

test('without the option an owner is ready at once, and need not say so', async () => {
  group.join('a');
  const asks = client();
  await group.clock.advance('30s');
  expect(await seen(asks, 0)).toEqual({ owner: true, router: true });
  expect(termOf('a', 0).isReady).toBe(true);
  await expect(termOf('a', 0).ready()).rejects.toThrow(MisuseError);
});

test('a term that ends first does not become ready', async () => {
  let settle = () => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  group.join('a', { ready: 'manual', own: () => settled });
  const asks = client();
  await group.clock.advance('30s');
  const term = termOf('a', 0);
  const said = term.ready();
  term.resign();
  await expect(said).rejects.toThrow(TermEndedError);
  await expect(term.ready()).rejects.toThrow(TermEndedError);
  await group.clock.advance('10s');
  expect(await seen(asks, 0)).toEqual({ owner: false, router: false });
  settle();
});

test('another value than manual is refused', async () => {
  expect(() => group.join('a', { ready: 'auto' as never })).toThrow(
    'ready is "manual" or left out, not "auto"',
  );
});
