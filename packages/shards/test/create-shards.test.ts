import type { Clock } from 'incumbent';
import { createElection, InvalidOptionError } from 'incumbent';
import { leaseBackend } from 'incumbent/backend';
import { memory } from 'incumbent/memory';
import type { HeldOperation, SimulatedConnection } from 'incumbent/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Shards, ShardsOptions, ShardsView, ShardTerm } from '../src/index.ts';
import { createShards, ListDiffersError } from '../src/index.ts';
import { Group, untilAborted } from './group.ts';

let group: Group;
beforeEach(() => {
  group = new Group();
});
afterEach(() => group.end());

describe('processes', () => {
  test('that start together share the shards evenly', async () => {
    for (const id of ['a', 'b', 'c']) group.join(id);
    await group.clock.advance('20s');
    expect(group.counts()).toEqual({ a: 4, b: 4, c: 4 });
    expect(group.troubles).toEqual([]);
  });

  test('that come later get their share, and no other shard moves', async () => {
    group.join('a');
    group.join('b');
    await group.clock.advance('20s');
    expect(group.terms).toHaveLength(12);
    group.join('c');
    await group.clock.advance('20s');
    expect(group.counts()).toEqual({ a: 4, b: 4, c: 4 });
    expect(group.terms).toHaveLength(16);
  });

  test('with more weight get more', async () => {
    group.join('a', { weight: 3 });
    group.join('b');
    await group.clock.advance('20s');
    expect(group.counts()).toEqual({ a: 9, b: 3 });
  });

  test('that are drained give all away, and leave', async () => {
    group.join('a');
    const b = group.join('b');
    await group.clock.advance('20s');
    const drained = b.drain();
    await group.clock.advance('20s');
    await drained;
    expect(group.counts()).toEqual({ a: 12, b: 0 });
    await expect(b.view()).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('that are drained leave although no other process takes part', async () => {
    const a = group.join('a');
    await group.clock.advance('20s');
    expect(group.counts()).toEqual({ a: 12 });
    const drained = a.drain();
    await group.clock.advance('20s');
    await drained;
    expect(group.counts()).toEqual({ a: 0 });
  });

  test('that cannot reach the store lose their shards, with higher tokens elsewhere', async () => {
    const way = group.store.connect();
    group.join('a', { backend: way.backend });
    group.join('b');
    await group.clock.advance('20s');
    const before = new Map(group.terms.map(({ term }) => [term.shard, term.token]));
    way.outage = 'silent';
    await group.clock.advance('60s');
    expect(group.counts()).toEqual({ a: 0, b: 12 });
    const after = group.terms.slice(12);
    expect(after).toHaveLength(6);
    for (const { id, term } of after) {
      expect(id).toBe('b');
      expect(term.token).toBeGreaterThan(before.get(term.shard) ?? 0n);
    }
  });

  test('send one write in each renewal interval, whatever they own', async () => {
    const way = group.store.connect();
    group.join('a', { shards: 5_000 });
    group.join('b', { shards: 5_000, backend: way.backend });
    await group.clock.advance('40s');
    expect(group.counts()).toEqual({ a: 2_500, b: 2_500 });
    const { swap } = way.sent;
    await group.clock.advance('60s');
    // R is 3 s. The coordinator's election takes as many, in the process that leads it.
    expect(way.sent.swap - swap).toBeLessThanOrEqual(2 * 21);
  });
});

test('a process that does not coordinate looks five times in a lease, however often a session makes it renew', async () => {
  const way = group.store.connect();
  // As on ZooKeeper, where a renewal raises no hint.
  const onSession = (connection: SimulatedConnection) => ({
    backend: leaseBackend<undefined>({
      ...{ kind: 'simulated', description: 'a simulated store', guard: () => undefined },
      limits: { sessionTimeoutMs: 15_000 },
      openStore({ election }) {
        const { read, swap } = connection.open(election);
        return { read, swap };
      },
    }),
  });
  const a = group.join('a', onSession(group.store.connect()));
  group.join('b', onSession(way));
  expect(a.timing.renewEveryMs).toBe(1_500);
  await group.clock.advance('40s');
  const { read } = way.sent;
  await group.clock.advance('60s');
  expect(way.sent.read - read).toBeLessThanOrEqual(21);
  expect(group.counts()).toEqual({ a: 6, b: 6 });
});

describe('the work of a shard', () => {
  test('that throws is told as trouble, and goes to another process', async () => {
    group.join('a', {
      own: async (shard, term) => {
        if (shard === 3) throw new Error('a full disk');
        await untilAborted(term.signal);
      },
    });
    group.join('b');
    await group.clock.advance('5s');
    const { owner } = await settled(group, (member) => member.view());
    expect(owner(3)?.id).toBe('b');
    // Only about once in a lease the process tries it again.
    await group.clock.advance('60s');
    expect(group.troubles.length).toBeLessThan(6);
    expect(new Set(group.troubles)).toEqual(new Set(['the work of shard 3: Error: a full disk']));
  });

  test('that resigns its term goes to another process, with a higher token', async () => {
    group.join('a');
    group.join('b');
    await group.clock.advance('20s');
    const first = group.terms.find(({ id }) => id === 'a')!;
    first.term.resign();
    expect(first.term.signal.reason).toMatchObject({ code: 'TERM_ENDED', reason: 'resigned' });
    await group.clock.advance('5s');
    const { owner } = await settled(group, (member) => member.view());
    expect(owner(first.term.shard)?.id).toBe('b');
    expect(owner(first.term.shard)?.token).toBeGreaterThan(first.term.token);
  });

  test('that does not stop keeps its shard, and is told as trouble after stopTimeout', async () => {
    group.join('a', { own: () => new Promise(() => {}), stopTimeout: '10s' });
    await group.clock.advance('20s');
    group.join('b', { stopTimeout: '10s' });
    await group.clock.advance('30s');
    // They are asked for, and not owned by anybody else.
    expect(group.counts()).toEqual({ a: 12, b: 0 });
    expect(group.troubles[0]).toMatch(
      /^stopping a shard: .*the work of shard \d+ has not settled within 10s/,
    );
    group.members.delete('a');
  });

  test('begins after the hooks have fenced a former owner whose end is not known', async () => {
    const way = group.store.connect();
    const fenced: string[] = [];
    group.join('a', { backend: way.backend });
    await group.clock.advance('20s');
    const tokens = new Map(group.terms.map(({ term }) => [term.shard, term.token]));
    way.outage = 'silent';
    group.join('b', {
      onUnclean: ({ id, token }, { shard, token: own }) => {
        expect(token).toBe(tokens.get(shard));
        expect(own).toBeGreaterThan(token);
        expect(group.terms.some(({ term }) => term.token === own)).toBe(false);
        fenced.push(`${id} ${shard}`);
      },
    });
    await group.clock.advance('90s');
    expect(fenced).toHaveLength(12);
    expect(fenced).toContain('a 7');
    expect(group.counts()).toEqual({ a: 0, b: 12 });
  });

  test('asks its own term, which knows the clocks', async () => {
    group.join('a');
    await group.clock.advance('20s');
    const term = group.members.get('a')?.term(5);
    expect(term?.isLeading()).toBe(true);
    expect(term?.remaining()).toBeGreaterThan(8_000);
    expect(() => term?.assertLeading(11_999)).toThrow('of belief');
    expect(() => term?.assertLeading(20_000)).toThrow(InvalidOptionError);
    expect(term?.toJSON()).toEqual({
      name: 'queues',
      shard: 5,
      candidate: 'a',
      token: `${term?.token}`,
      state: 'leading',
    });
    group.clock.stall('13s');
    expect(term?.isLeading()).toBe(false);
    expect(() => term?.assertLeading()).toThrow(/term \d+ of election "queues, shard 5" is over/);
    expect(group.members.get('a')?.owned()).toEqual([]);
  });
});

describe('a list of shards', () => {
  test('that differs is refused by both counts, and nothing moves', async () => {
    group.join('a');
    await group.clock.advance('20s');
    const other = group.join('b', { shards: 13 });
    const refused = expect(other.joined).rejects.toThrow(
      'this process has 13 numbered shards, and the others have 12 numbered shards',
    );
    await group.clock.advance('20s');
    await refused;
    await expect(other.joined).rejects.toThrow(ListDiffersError);
    expect(group.terms).toHaveLength(12);
    expect(group.counts()).toEqual({ a: 12, b: 0 });
  });

  test('takes the place of another one when no process has that any more', async () => {
    const way = group.store.connect();
    group.join('a', { backend: way.backend });
    await group.clock.advance('20s');
    // It dies: nothing is given back.
    way.outage = 'silent';
    group.join('b', { shards: 20 });
    await group.clock.advance('2m');
    expect(group.members.get('b')?.owned()).toHaveLength(20);
    const tokens = new Map(group.terms.slice(0, 12).map(({ term }) => [term.shard, term.token]));
    for (const { term } of group.terms.slice(12)) {
      expect(term.token).toBeGreaterThan(tokens.get(term.shard) ?? 0n);
    }
  });

  test('takes its place although the store does not answer for a while', async () => {
    const way = group.store.connect();
    group.join('a', { backend: way.backend });
    await group.clock.advance('20s');
    way.outage = 'silent';
    const other = group.store.connect();
    group.join('b', { shards: 20, backend: other.backend });
    await group.clock.advance('4s');
    other.outage = 'refuses';
    await group.clock.advance('4s');
    other.outage = 'none';
    await group.clock.advance('2m');
    expect(group.members.get('b')?.owned()).toHaveLength(20);
  });

  test('may have names, in any order', async () => {
    const names = ['initech', 'acme', 'globex'];
    const open = (id: string, shards: readonly string[]) =>
      createShards({
        name: 'tenants',
        backend: group.store.connect().backend,
        clock: group.clock,
        candidate: { id },
        shards,
        own: (_tenant, term) => untilAborted(term.signal),
      });
    const a = open('a', names);
    const b = open('b', [...names].reverse());
    await group.clock.advance('20s');
    expect([...a.owned(), ...b.owned()].sort()).toEqual([...names].sort());
    const c = open('c', ['acme', 'globex', 'hooli']);
    const refused = expect(c.joined).rejects.toThrow('both lists have 3 shards, with different');
    await group.clock.advance('20s');
    await refused;
    expect(() => a.term('hooli')).toThrow('there is no shard "hooli" in the list of 3');
    const closed = Promise.all([a.close(), b.close(), c.close()]);
    await group.clock.advance('1m');
    await closed;
  });
});

describe('a list of names', () => {
  let handles: Shards<string>[];
  let spells: { readonly id: string; readonly shard: string; readonly term: ShardTerm<string> }[];

  beforeEach(() => {
    handles = [];
    spells = [];
  });
  afterEach(async () => {
    const closed = Promise.all(handles.map((each) => each.close()));
    await group.clock.advance('1m');
    await closed;
  });

  function open(id: string, more: Partial<ShardsOptions<string>>): Shards<string> {
    const shards = createShards({
      name: 'tenants',
      backend: group.store.connect().backend,
      clock: group.clock,
      candidate: { id },
      shards: ['acme', 'globex'],
      onTrouble: ({ what, error }) => group.troubles.push(`${what}: ${error}`),
      own: async (shard, term) => {
        spells.push({ id, shard, term });
        await untilAborted(term.signal);
      },
      ...more,
    });
    shards.joined.catch(() => {});
    handles.push(shards);
    return shards;
  }

  test('that changes keeps the owners that have to be fenced, and their tokens', async () => {
    const way = group.store.connect();
    open('a', { backend: way.backend });
    await group.clock.advance('20s');
    const tokens = new Map(spells.map(({ shard, term }) => [shard, term.token]));
    expect(tokens.size).toBe(2);
    way.outage = 'silent';
    const fenced: string[] = [];
    const b = open('b', {
      shards: ['aaa', 'acme', 'globex'],
      onUnclean: ({ id, token }, { shard, token: own }) => {
        expect(token).toBe(tokens.get(shard));
        expect(own).toBeGreaterThan(token);
        expect(handles[0]?.owned()).toEqual([]);
        fenced.push(`${id} ${shard}`);
      },
    });
    await group.clock.advance('2m');
    expect([...b.owned()].sort()).toEqual(['aaa', 'acme', 'globex']);
    expect(fenced.sort()).toEqual(['a acme', 'a globex']);
  });

  test('that loses a name and gets it back keeps the owner of before to be fenced', async () => {
    const way = group.store.connect();
    open('a', { backend: way.backend });
    await group.clock.advance('20s');
    way.outage = 'silent';
    const other = group.store.connect();
    open('b', { shards: ['globex', 'hooli'], backend: other.backend });
    await group.clock.advance('2m');
    other.outage = 'silent';
    const fenced: string[] = [];
    const c = open('c', {
      shards: ['acme'],
      onUnclean: ({ id }, { shard }) => {
        fenced.push(`${id} ${shard}`);
      },
    });
    await group.clock.advance('2m');
    expect(c.owned()).toEqual(['acme']);
    expect(fenced).toEqual(['a acme']);
  });

  test('that a function tells changes while processes run, and no other shard moves', async () => {
    let list = ['acme', 'globex', 'initech'];
    const tell = { shards: async () => list };
    const [a, b] = [open('a', tell), open('b', tell)];
    await group.clock.advance('20s');
    expect([...a.owned(), ...b.owned()].sort()).toEqual(list);
    const before = spells.length;
    expect(before).toBe(3);
    const acme = spells.find(({ shard }) => shard === 'acme')!;

    list = ['globex', 'hooli', 'initech'];
    await group.clock.advance('10s');
    expect([...a.owned(), ...b.owned()].sort()).toEqual(list);
    expect(acme.term.signal.reason).toMatchObject({ reason: 'handed-over' });
    expect(spells.slice(before).map(({ shard }) => shard)).toEqual(['hooli']);
    expect((await settledWith(group, a.view())).shards).toBe(3);
    expect((await settledWith(group, b.owner('hooli')))?.id).toBe(spells.at(-1)?.id);

    list = ['acme', 'globex', 'hooli', 'initech'];
    await group.clock.advance('10s');
    expect([...a.owned(), ...b.owned()].sort()).toEqual(list);
    expect(spells).toHaveLength(before + 2);
    expect(spells.at(-1)?.shard).toBe('acme');
    expect(spells.at(-1)?.term.token).toBeGreaterThan(acme.term.token);
    expect(group.troubles).toEqual([]);
  });

  test('a shard has a higher token than before although its slot and its coordinator are gone', async () => {
    let list = ['acme', 'globex'];
    const tell = { name: 'queues', shards: async () => list };
    const [a, b] = [open('a', tell), open('b', tell)];
    await group.clock.advance('20s');
    expect(group.store.record('queues')?.holding?.candidate.id).toBe('a');
    const [kept] = b.owned();
    list = [kept!];
    await group.clock.advance('20s');
    list = [kept!, 'hooli'];
    await group.clock.advance('20s');
    expect(a.owned()).toEqual(['hooli']);
    const before = spells.at(-1)!.term.token;
    // The highest token stands in this slot alone, and no shard is granted after it is lost.
    list = [kept!];
    await group.clock.advance('20s');
    group.store.put(`queues/${group.slotOf('a')}`, undefined);
    await group.clock.advance('60s');
    await settledWith(group, a.close());
    list = [kept!, 'hooli'];
    await group.clock.advance('30s');
    expect(b.owned()).toEqual([kept, 'hooli']);
    expect(spells.at(-1)!.term.token).toBeGreaterThan(before);
  });

  test('a shard has a higher token than before however often its slot is lost', async () => {
    let list = ['acme', 'globex'];
    const tell = { name: 'queues', shards: async () => list };
    const [a, b] = [open('a', tell), open('b', tell)];
    await group.clock.advance('20s');
    const [kept] = b.owned();
    let before = 1n;
    for (let losses = 0; losses < 3; losses += 1) {
      list = [kept!];
      await group.clock.advance('20s');
      group.store.put(`queues/${group.slotOf('a')}`, undefined);
      await group.clock.advance('60s');
      list = [kept!, 'hooli'];
      await group.clock.advance('20s');
      expect(a.owned()).toEqual(['hooli']);
      const { token } = spells.at(-1)!.term;
      expect(token).toBeGreaterThan(before);
      before = token;
    }
  });

  test('that cannot be told, or has no name in it, stays as it is', async () => {
    let told: () => unknown = () => ['acme', 'globex'];
    const a = open('a', { shards: () => told() as string[] });
    await group.clock.advance('20s');
    told = () => [];
    await group.clock.advance('10s');
    told = () => Promise.reject(new Error('no database'));
    await group.clock.advance('10s');
    told = () => ['acme', 'acme'];
    await group.clock.advance('10s');
    expect([...a.owned()].sort()).toEqual(['acme', 'globex']);
    expect(spells).toHaveLength(2);
    const said = group.troubles.join();
    expect(said).toContain('1 to 100000 shards, and the list has 0');
    expect(said).toContain('no database');
    expect(said).toContain('names "acme" twice');
  });

  test('does not take the place of shards with numbers', async () => {
    const way = group.store.connect();
    group.join('a', { name: 'tenants', backend: way.backend });
    await group.clock.advance('20s');
    way.outage = 'silent';
    await group.clock.advance('1m');
    const b = open('b', {});
    const refused = expect(b.joined).rejects.toThrow('cannot share a name');
    await group.clock.advance('1m');
    await refused;
  });

  test('is read by a process that owns nothing', async () => {
    open('a', { shards: async () => ['acme', 'globex'] });
    await group.clock.advance('20s');
    const { own: _, ...client } = { own: undefined };
    const asks = createShards({
      name: 'tenants',
      backend: group.store.connect().backend,
      clock: group.clock,
      shards: () => [],
      ...client,
    });
    expect((await settledWith(group, asks.owner('globex')))?.id).toBe('a');
    expect(await settledWith(group, asks.owner('hooli'))).toBeUndefined();
    const closed = asks.close();
    await settledWith(group, closed);
  });
});

test('a process that owns nothing sees which process owns what', async () => {
  group.join('a');
  group.join('b');
  const { own: _, ...others } = { own: undefined };
  const client = createShards({
    name: 'queues',
    backend: group.store.connect().backend,
    shards: 12,
    clock: group.clock,
    ...others,
  });
  await client.joined;
  const views = client.observe();
  expect((await settledWith(group, views.next())).value?.unowned).toHaveLength(12);
  await group.clock.advance('20s');
  const view: ShardsView<number> = (await settledWith(group, views.next())).value!;
  expect(view.members.map(({ id, owns }) => [id, owns]).sort()).toEqual([
    ['a', 6],
    ['b', 6],
  ]);
  const owner = await settledWith(group, client.owner(0));
  expect(owner?.addresses).toEqual([`${owner?.id}:80`]);
  expect(group.members.get(owner?.id ?? '')?.term(0)?.token).toBe(owner?.token);
  await expect(client.owner(12)).rejects.toThrow('shards have the numbers 0 to 11');
  const closed = client.close();
  await settledWith(group, closed);
  expect((await views.next()).done).toBe(true);
});

test('the name of an ordinary election is refused, and that of shards to an election', async () => {
  const backend = memory();
  const clock: Clock = group.clock;
  const election = createElection({ name: 'jobs', backend, clock });
  const leading = election.campaign();
  const term = await settledWith(group, leading);
  const shards = createShards({
    name: 'jobs',
    backend,
    clock,
    shards: 4,
    own: (_shard, { signal }) => untilAborted(signal),
    onTrouble: () => {},
  });
  const refused = expect(shards.joined).rejects.toThrow(
    'the name "jobs" belongs to an ordinary election',
  );
  await group.clock.advance('20s');
  await refused;
  await settledWith(group, term[Symbol.asyncDispose]());

  group.join('a');
  await group.clock.advance('20s');
  const other = createElection({
    name: 'queues',
    backend: group.store.connect().backend,
    clock,
  });
  await expect(settledWith(group, other.campaign({ wait: 0 }))).rejects.toThrow(
    'the name "queues" belongs to shards',
  );
});

test('a directory that was deleted is written again', async () => {
  group.join('a');
  await group.clock.advance('30s');
  group.store.put('queues/directory', undefined);
  await group.clock.advance('20s');
  const { record } = await group.store
    .connect()
    .open('queues/directory')
    .read(new AbortController().signal);
  expect(record?.shards).toBeDefined();
});

test('a process joins although one slot is damaged', async () => {
  group.join('a');
  await group.clock.advance('20s');
  const { signal } = new AbortController();
  for (let number = 1; number <= 16; number += 1) {
    const { record } = await group.store.connect().open(`queues/${number}`).read(signal);
    if (record === undefined || record.holding !== undefined) continue;
    group.store.put(`queues/${number}`, { ...record, shards: '////' });
    break;
  }
  const b = group.join('b');
  await settledWith(group, b.joined);
  expect(group.troubles.join()).toContain('reading a slot');
});

test('a process that is closed while it wins a slot gives that back', async () => {
  group.join('a');
  await group.clock.advance('20s');
  const { signal } = new AbortController();
  for (let turns = 0; turns < 24; turns += 1) {
    const way = group.store.connect();
    way.hold('swap');
    const late = group.join(`late ${turns}`, { backend: way.backend });
    await group.clock.advance('5s');
    const winning = way.held.find(({ election }) => /[/][0-9]+$/.test(election));
    expect(winning).toBeDefined();
    winning?.answer();
    for (let i = 0; i < turns; i += 1) await Promise.resolve();
    const closed = late.close();
    way.release('swap');
    await group.clock.advance('20s');
    await closed;
    for (let number = 1; number <= 16; number += 1) {
      const { record } = await group.store.connect().open(`queues/${number}`).read(signal);
      expect(record?.holding?.candidate.id).not.toBe(`late ${turns}`);
    }
  }
});

test('a coordinator whose writes have no answer waits for them', async () => {
  const way = group.store.connect();
  const { clock, timers } = counting(group);
  group.join('a', { backend: way.backend, clock });
  await group.clock.advance('20s');
  void group.members.get('a')?.close();
  await group.clock.advance('20s');
  const next = group.store.connect();
  next.hold('swap');
  group.join('b', { backend: next.backend, clock });
  // It leads, and its seals of vacant slots hang.
  const isSeal = ({ election, next: record }: HeldOperation) =>
    /[/][0-9]+$/.test(election) && record?.holding === undefined;
  for (let i = 0; i < 50 && !next.held.some(isSeal); i += 1) {
    for (const held of [...next.held]) if (!isSeal(held)) held.answer();
    await group.clock.advance('100ms');
  }
  expect(next.held.some(isSeal)).toBe(true);
  const before = timers();
  await group.clock.advance('1s');
  expect(timers() - before).toBeLessThan(300);
  next.release('swap');
});

test('a coordinator waits for a holder whose record was set back, and does not ask all the time', async () => {
  const { clock, timers } = counting(group);
  group.join('a', { clock });
  await group.clock.advance('5s');
  const way = group.store.connect();
  group.join('b', { backend: way.backend });
  await group.clock.advance('20s');
  const name = `queues/${group.slotOf('b')}`;
  way.outage = 'silent';
  await group.clock.advance('10s');
  const record = group.store.record(name)!;
  group.store.put(name, { ...record, token: record.token - 1n });
  // The last write of the holder has stood for a lease, and the loss has not.
  await group.clock.advance('8s');
  expect(group.store.record(name)?.holding).toBeDefined();
  const before = timers();
  await group.clock.advance('1s');
  expect(timers() - before).toBeLessThan(100);
});

describe('bad input is refused before anything is touched:', () => {
  const own = async () => {};
  const good = { name: 'queues', backend: memory(), shards: 4, own };
  test.each<readonly [string, object, RegExp]>([
    ['no shards', { shards: 0 }, /from 1 to 100000, not 0/],
    ['a million shards', { shards: 1_000_000 }, /from 1 to 100000, not 1000000/],
    ['half a shard', { shards: 1.5 }, /whole number/],
    ['an empty list', { shards: [] }, /1 to 100000 shards, and the list has 0/],
    ['a name twice', { shards: ['a', 'b', 'a'] }, /names "a" twice/],
    ['a shard without a name', { shards: ['a', ''] }, /name of a shard must not be empty/],
    [
      'something else',
      { shards: 'all' },
      /256, a list of names, or a function that tells it, not "all"/,
    ],
    ['no weight', { weight: 0 }, /weight must be a whole number from 1 to 1000, not 0/],
    ['a negative weight', { weight: -1 }, /not -1/],
    ['a weight that is too high', { weight: 1_001 }, /not 1001/],
    ['no moves', { maxMoving: 0 }, /maxMoving must be a whole number of at least 1, not 0/],
    ['an option that is not known', { shard: 4 }, /createShards has no option "shard"/],
    ['work that is no function', { own: 'work' }, /own must be a function, not "work"/],
    ['an option of members', { own: undefined, weight: 2 }, /weight is for a process that owns/],
    ['no backend', { backend: undefined }, /backend must be a store such as/],
    ['a long name', { name: 'q'.repeat(181) }, /at most 180 are allowed/],
    ['a hook that is none', { onUnclean: [1] }, /onUnclean takes functions, not 1/],
    ['a time without hooks', { hookTimeout: '1s' }, /there are none: leave it out/],
    ['timing that cannot be kept', { lease: '10s', belief: '20s' }, /cannot be kept/],
  ])('%s', (_what, options, message) => {
    expect(() => createShards({ ...good, ...options } as ShardsOptions<number>)).toThrow(message);
  });

  test('a store without leases', () => {
    const backend = { ...memory(), leases: undefined, kind: 'tape' };
    expect(() => createShards({ ...good, backend })).toThrow('the kind "tape" cannot hold shards');
  });
});

/** A clock that counts the timers that are set. */
function counting(of: Group): { readonly clock: Clock; readonly timers: () => number } {
  let timers = 0;
  const clock: Clock = {
    monotonicMs: () => of.clock.monotonicMs(),
    wallMs: () => of.clock.wallMs(),
    setTimer: (run, ms) => {
      timers += 1;
      return of.clock.setTimer(run, ms);
    },
  };
  return { clock, timers: () => timers };
}

/** Lets time pass until it has an answer. */
async function settledWith<T>({ clock }: Group, promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  await clock.advance('5s');
  return promise;
}

function settled<T>(of: Group, ask: (member: Shards<number>) => Promise<T>): Promise<T> {
  return settledWith(of, ask(of.members.get('b')!));
}

test('a process for which others act leaves no proof of its death, and tells the end of its belief', async () => {
  const ends: (number | undefined)[] = [];
  const onBelief = (deadline: { monotonicMs: number } | undefined) => {
    ends.push(deadline?.monotonicMs);
  };
  const shards = group.join('a', { actors: 'declared', onBelief });
  group.join('b');
  await group.clock.advance('20s');
  const holdings = Array.from({ length: 16 }, (_none, i) => group.store.record(`queues/${i + 1}`));
  const own = holdings.find((record) => record?.holding?.candidate.id === 'a');
  expect(own?.holding?.actors).toBeNull();
  const last = ends.at(-1) ?? 0;
  expect(last - group.clock.monotonicMs()).toBeGreaterThan(0);
  await group.clock.advance('6s');
  expect(ends.at(-1)).toBeGreaterThan(last);
  const closed = shards.close();
  await group.clock.advance('5s');
  await closed;
  expect(ends.at(-1)).toBeUndefined();
  expect(() => group.join('c', { actors: 'others' as 'self' })).toThrow(
    'actors is "self" or "declared"',
  );
  expect(() => group.join('c', { onBelief: 1 as never })).toThrow('onBelief must be a function');
});
