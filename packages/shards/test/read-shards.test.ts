import { createElection, InvalidOptionError, resolveTiming } from 'incumbent';
import { SimulatedClock, SimulatedLeaseStore } from 'incumbent/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Shards, ShardsOptions, ShardsStatus } from '../src/index.ts';
import { createShards, listShards, observeShards, readShards } from '../src/index.ts';
import { untilAborted } from './group.ts';

let clock: SimulatedClock;
let store: SimulatedLeaseStore;
let members: Map<string, Shards<number>>;

beforeEach(() => {
  clock = new SimulatedClock();
  store = new SimulatedLeaseStore({ clock });
  members = new Map();
});
afterEach(async () => {
  const closed = Promise.all([...members.values()].map((shards) => shards.close()));
  await clock.advance('5m');
  await closed;
});

function join(id: string, more: Partial<ShardsOptions<number>> = {}): Shards<number> {
  const shards = createShards({
    name: 'queues',
    backend: store.connect().backend,
    shards: 12,
    clock,
    random: () => 0.5,
    candidate: { id, addresses: [`${id}:80`] },
    onTrouble: () => {},
    own: (_shard, { signal }) => untilAborted(signal),
    ...more,
  });
  shards.joined.catch(() => {});
  members.set(id, shards);
  return shards;
}

const reading = () => ({ name: 'queues', backend: store.connect().backend, clock });

function countsOf(status: ShardsStatus | undefined): object {
  return Object.fromEntries(status?.members.map(({ id, owns }) => [id, owns]) ?? []);
}

describe('a reader', () => {
  test('is told of every member and of the owner of every shard, without the list of shards', async () => {
    const a = join('a', { weight: 2, zone: 'x' });
    join('b');
    await clock.advance('20s');
    const way = store.connect();
    const status = await readShards({ ...reading(), backend: way.backend });
    expect(status).toMatchObject({ name: 'queues', shards: 12, isNamed: false, unowned: [] });
    expect(countsOf(status)).toEqual({ a: 8, b: 4 });
    expect(status?.members.find(({ id }) => id === 'a')).toMatchObject({
      ...{ weight: 2, zone: 'x', joined: true, drained: false, moving: 0 },
      addresses: ['a:80'],
    });
    expect(['a', 'b']).toContain(status?.coordinator);
    for (const shard of a.owned()) {
      expect(status?.owner(shard)).toMatchObject({ id: 'a', token: a.term(shard)?.token });
    }
    expect(way.sent.swap).toBe(0);
  });

  test('finds no shards where there are none, and refuses the name of an election', async () => {
    expect(await readShards(reading())).toBeUndefined();
    const election = createElection({ name: 'queues', backend: store.connect().backend, clock });
    const term = await election.campaign();
    await expect(readShards(reading())).rejects.toThrow(InvalidOptionError);
    await term[Symbol.asyncDispose]();
    await election.close();
  });

  test('knows shards with names by their numbers, and these names', async () => {
    const named = createShards({
      name: 'tenants',
      ...{ backend: store.connect().backend, clock, random: () => 0.5 },
      shards: ['globex', 'acme'],
      own: (_shard, { signal }) =>
        new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => resolve(), { once: true });
        }),
    });
    await clock.advance('20s');
    const status = await readShards({ ...reading(), name: 'tenants' });
    expect(status).toMatchObject({ isNamed: true, shards: 2, unowned: [] });
    expect(status?.names).toEqual(['acme', 'globex']);
    expect(status?.owner(0)?.token).toBe(named.term('acme')?.token);
    const closed = named.close();
    await clock.advance('1m');
    await closed;
  });

  test('finds the names of all shards, and no elections beside them', async () => {
    const { backend } = store.connect();
    const election = createElection({ name: 'mail', backend, clock });
    const term = await election.campaign();
    expect(await listShards(backend)).toEqual([]);
    join('a');
    await clock.advance('20s');
    expect(await listShards(backend)).toEqual(['queues']);
    const names: string[] = [];
    for await (const name of backend.elections({ clock })) names.push(name);
    expect(names).toEqual(['mail']);
    await term[Symbol.asyncDispose]();
    await election.close();
    const { leases } = backend;
    if (leases === undefined) throw new Error('the simulated store has leases');
    const { shards: _, ...mute } = leases;
    await expect(listShards({ ...backend, leases: mute })).rejects.toThrow('does not list its');
  });

  test('is told which options are none', () => {
    expect(() => observeShards({ ...reading(), shards: 3 } as never)).toThrow(/shards/);
    expect(() => observeShards({ ...reading(), name: '' })).toThrow(InvalidOptionError);
    expect(() => observeShards({ ...reading(), onTrouble: 1 } as never)).toThrow(/onTrouble/);
  });
});

describe('an observer', () => {
  /** Collects what it is told. */
  function observe(backend = store.connect().backend) {
    const troubles: string[] = [];
    const onTrouble = ({ what }: { readonly what: string }) => troubles.push(what);
    const told: (ShardsStatus | undefined)[] = [];
    const iterator = observeShards({ ...reading(), backend, onTrouble });
    const end = (async () => {
      for await (const status of iterator) told.push(status);
    })();
    const stop = async () => {
      await iterator.return();
      await end;
    };
    return { told, troubles, stop };
  }

  test('is told when a member comes, is drained by an operator, and goes', async () => {
    join('a');
    const { told, stop } = observe();
    await clock.advance('20s');
    expect(countsOf(told.at(-1))).toEqual({ a: 12 });
    const b = join('b', {
      // Longer than from one look of the observer to the next.
      own: async (_shard, { signal }) => {
        await untilAborted(signal);
        await clock.sleep(4_000);
      },
    });
    await clock.advance('20s');
    expect(countsOf(told.at(-1))).toEqual({ a: 6, b: 6 });
    const count = told.length;
    await clock.advance('1m');
    expect(told).toHaveLength(count);

    const left = b.drain();
    await clock.advance('20s');
    await left;
    expect(countsOf(told.at(-1))).toEqual({ a: 12 });
    expect(told.some((status) => status?.members.some(({ drained }) => drained))).toBe(true);
    expect(told.some((status) => (status?.moving.length ?? 0) > 0)).toBe(true);
    await stop();
  });

  test('sees shards without an owner when all members are cut off, and nobody says so', async () => {
    const way = store.connect();
    join('a', { backend: way.backend });
    const { told, stop } = observe();
    await clock.advance('20s');
    expect(told.at(-1)?.unowned).toHaveLength(0);
    way.outage = 'silent';
    await clock.advance('40s');
    expect(told.at(-1)).toMatchObject({ members: [], coordinator: undefined });
    expect(told.at(-1)?.unowned).toHaveLength(12);
    await stop();
  });

  test('is told of a slot with a damaged record, and of all others', async () => {
    join('a');
    const { told, troubles, stop } = observe();
    await clock.advance('20s');
    const { leases } = store.connect().backend;
    const slot = leases?.open({
      ...{ election: 'queues/16', clock, random: Math.random, uniqueId: () => 'x' },
      timing: resolveTiming({}),
      onTrouble: () => {},
    });
    const never = new AbortController().signal;
    const { record, version } = (await slot?.read(never)) ?? {};
    if (record === undefined || version === undefined) throw new Error('there are 16 slots');
    await slot?.swap(version, { ...record, shards: 'AA==' }, never);
    // After a lease the coordinator replaces it.
    await clock.advance('10s');
    expect(told.at(-1)?.unreadable).toEqual([
      { slot: 16, error: expect.objectContaining({ code: 'RECORD_DAMAGED' }) },
    ]);
    expect(countsOf(told.at(-1))).toEqual({ a: 12 });
    expect(troubles).toEqual([]);
    await stop();
  });

  test('is told of trouble while the store is away, and of the same status when it is back', async () => {
    join('a');
    const way = store.connect();
    const { told, troubles, stop } = observe(way.backend);
    await clock.advance('20s');
    const count = told.length;
    way.outage = 'silent';
    await clock.advance('30s');
    expect(troubles).toContain('reading the shards');
    expect(told).toHaveLength(count);
    way.outage = 'none';
    await clock.advance('20s');
    expect(told).toHaveLength(count + 1);
    await stop();
  });
});
