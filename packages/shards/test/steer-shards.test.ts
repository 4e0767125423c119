import { InvalidOptionError, RefusedError } from 'incumbent';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeHead, encodeHead } from '../src/codec.ts';
import { drainMember, pinShard, readShards, unpinShard } from '../src/index.ts';
import { Group } from './group.ts';

let group: Group;
beforeEach(() => {
  group = new Group();
});
afterEach(() => group.end());

/** A way to the store of its own, for an operator. */
const reading = () => ({
  name: 'queues',
  backend: group.store.connect().backend,
  clock: group.clock,
});
const ownerOf = async (shard: number) => (await readShards(reading()))?.owner(shard)?.id;
const pins = async () => (await readShards(reading()))?.pins;

async function answer<T>(asked: Promise<T>): Promise<T> {
  asked.catch(() => {});
  await group.clock.advance('1s');
  return asked;
}

async function shardOf(id: string): Promise<number> {
  const status = await readShards(reading());
  const member = status?.members.find((one) => one.id === id);
  return Number(status?.ownedBy(member?.slot ?? 0)[0]);
}

test('a pinned shard moves to its process, and counts in the balance', async () => {
  for (const id of ['a', 'b', 'c']) group.join(id);
  await group.clock.advance('20s');
  const shard = await shardOf('a');
  const { changed, before } = await answer(pinShard(reading(), shard, 'c'));
  expect([changed, before.owner(shard)?.id]).toEqual([true, 'a']);
  await group.clock.advance('5s');
  expect(await ownerOf(shard)).toBe('c');
  expect(group.counts()).toEqual({ a: 4, b: 4, c: 4 });
  expect(await pins()).toEqual([{ shard, to: 'c' }]);
  expect((await answer(pinShard(reading(), shard, 'c'))).changed).toBe(false);
});

test('a pin sleeps while its process is gone, and counts again when one of that id joins', async () => {
  for (const id of ['a', 'b', 'c']) group.join(id);
  await group.clock.advance('20s');
  const shard = await shardOf('a');
  await answer(pinShard(reading(), shard, 'c'));
  await group.clock.advance('5s');
  const left = group.members.get('c')?.drain();
  await group.clock.advance('20s');
  await left;
  group.members.delete('c');
  expect(['a', 'b']).toContain(await ownerOf(shard));
  group.join('c');
  await group.clock.advance('30s');
  expect(await ownerOf(shard)).toBe('c');
});

test('a shard whose pin is cleared stays where it is, and is shared like the others', async () => {
  for (const id of ['a', 'b']) group.join(id);
  await group.clock.advance('20s');
  const shards = Array.from({ length: 12 }, (_none, shard) => shard);
  for (const shard of shards) await answer(pinShard(reading(), shard, 'b'));
  await group.clock.advance('20s');
  expect(group.counts()).toEqual({ a: 0, b: 12 });
  expect((await answer(unpinShard(reading(), 3))).changed).toBe(true);
  expect((await answer(unpinShard(reading(), 3))).changed).toBe(false);
  await group.clock.advance('20s');
  expect(group.counts()).toEqual({ a: 1, b: 11 });
  expect(await ownerOf(3)).toBe('a');
});

test('pins outlive the coordinator', async () => {
  for (const id of ['a', 'b', 'c']) group.join(id);
  await group.clock.advance('20s');
  const { coordinator = '' } = (await readShards(reading())) ?? {};
  const other = ['a', 'b', 'c'].find((id) => id !== coordinator) ?? '';
  await answer(pinShard(reading(), 0, other));
  await group.clock.advance('20s');
  const left = group.members.get(coordinator)?.drain();
  await group.clock.advance('60s');
  await left;
  group.members.delete(coordinator);
  expect(await pins()).toEqual([{ shard: 0, to: other }]);
  expect(await ownerOf(0)).toBe(other);
});

test('a pin beside a record that moves on is written on the newest version', async () => {
  group.join('a');
  group.join('b');
  await group.clock.advance('20s');
  const all = Array.from({ length: 6 }, (_none, shard) => pinShard(reading(), shard, 'b'));
  await group.clock.advance('10s');
  await Promise.all(all);
  expect((await pins())?.length).toBe(6);
  await group.clock.advance('20s');
  expect(group.counts()).toEqual({ a: 6, b: 6 });
  expect(await Promise.all([0, 1, 2, 3, 4, 5].map(ownerOf))).toEqual(new Array(6).fill('b'));
});

test('a drained process gives all its shards away, keeps out, and comes back when that is lifted', async () => {
  for (const id of ['a', 'b', 'c']) group.join(id);
  await group.clock.advance('20s');
  const until = new Date(group.clock.wallMs() + 3_600_000);
  // Also the process that coordinates: another one goes on with that.
  const { coordinator = '' } = (await readShards(reading())) ?? {};
  expect((await answer(drainMember(reading(), coordinator, until))).changed).toBe(true);
  await group.clock.advance('60s');
  expect(group.counts()[coordinator]).toBe(0);
  const status = await readShards(reading());
  expect(status?.members.find(({ id }) => id === coordinator)?.drained).toBe(true);
  expect(status?.unowned).toEqual([]);
  await expect(answer(pinShard(reading(), 0, coordinator))).rejects.toThrow(
    `"${coordinator}" gives all of its shards of "queues" away: it is drained, or it leaves`,
  );
  await answer(drainMember(reading(), coordinator, new Date(0)));
  await group.clock.advance('30s');
  expect(group.counts()).toEqual({ a: 4, b: 4, c: 4 });
});

test('a pin is refused when the list has become too short for it since the shards were read', async () => {
  group.join('a');
  await group.clock.advance('20s');
  const way = group.store.connect();
  way.hold('read');
  const pinned = pinShard({ ...reading(), backend: way.backend }, 8, 'a');
  pinned.catch(() => {});
  const readsOfHead = () => way.held.filter(({ election }) => election === 'queues').length;
  for (let heads = 0; heads < 2; ) {
    await group.clock.advance('1ms');
    heads += readsOfHead();
    if (heads < 2) for (const held of [...way.held]) held.answer();
  }
  const { shards = '', ...record } = group.store.record('queues')!;
  const head = decodeHead(Buffer.from(shards, 'base64'), 'the head');
  const shorter = encodeHead({ ...head, list: { count: 4, digest: 0n } });
  group.store.put('queues', { ...record, shards: Buffer.from(shorter).toString('base64') });
  way.release('read');
  const error = await answer<unknown>(pinned).catch((failed: unknown) => failed);
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(String(error)).toContain(
    '"queues" has no shard 8 any more: its processes have 4 numbered shards now, from 0 to 3. Pin one of these',
  );
});

test('a bad request is refused before anything is changed', async () => {
  await expect(answer(pinShard(reading(), 0, 'a'))).rejects.toThrow(
    'there are no shards "queues" on this store',
  );
  group.join('a');
  group.join('b');
  await group.clock.advance('20s');
  const before = JSON.stringify(await pins());
  for (const [ask, kind, text] of [
    [
      () => pinShard(reading(), 12, 'a'),
      InvalidOptionError,
      'there is no shard 12: shards have the numbers 0 to 11',
    ],
    [() => unpinShard(reading(), -1), InvalidOptionError, 'there is no shard -1'],
    [
      () => pinShard(reading(), 0, 'z'),
      RefusedError,
      'no process "z" takes part in the shards "queues"; these do: "a", "b"',
    ],
    [() => pinShard(reading(), 0, ''), InvalidOptionError, 'the id of the process'],
    [() => drainMember(reading(), '', new Date()), InvalidOptionError, 'the id of the process'],
    [() => drainMember(reading(), 'a', new Date('x')), InvalidOptionError, 'until'],
  ] as const) {
    const error = await answer<unknown>(ask()).catch((failed: unknown) => failed);
    expect(error).toBeInstanceOf(kind);
    expect(String(error)).toContain(text);
  }
  expect(JSON.stringify(await pins())).toBe(before);
});
