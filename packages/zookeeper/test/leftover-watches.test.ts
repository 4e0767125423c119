import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import type { ClientOptions, WatchEvent, ZooKeeper } from '../src/index.ts';
import { connect, createClient } from '../src/index.ts';
import { TestClock, until } from './hostile-reading/clock.ts';
import { closeAfterEach } from './hostile-reading/closing.ts';

const later = closeAfterEach();

async function setup(options: ClientOptions = {}) {
  const fake = later(await FakeZooKeeper.start());
  const clock = new TestClock();
  const client = later(createClient(fake.connectionString, { clock, ...options }), clock);
  await client.connected();
  /** The server's watches, once it has all requests that were sent. */
  const onServer = async (one: ZooKeeper = client) => {
    await one.sync();
    return fake.watches(one.session!.id).map(({ kind, path, mode }) => `${mode} ${kind} ${path}`);
  };
  const removals = () => fake.requests.filter(({ opcode }) => opcode === 'removeWatches').length;
  return { fake, clock, client, onServer, removals };
}

describe('a watch that is no longer waited for', () => {
  it.each([
    ['of data', '/there', (client: ZooKeeper) => client.watch('/there')],
    ['of a node that is not there', '/absent', (client: ZooKeeper) => client.watch('/absent')],
    ['of existence', '/there', (client: ZooKeeper) => client.watchStat('/there')],
    ['of absence', '/absent', (client: ZooKeeper) => client.watchStat('/absent')],
    ['of children', '/there', (client: ZooKeeper) => client.watchChildren('/there')],
  ])('%s leaves the server when it is cancelled', async (_, path, watch) => {
    const { client, onServer, removals } = await setup();
    await client.create('/there');
    const watches = [await watch(client), await watch(client)];
    expect(await onServer()).toEqual([expect.stringContaining(path)]);
    watches[0]!.cancel();
    expect(await onServer()).toHaveLength(1);
    watches[1]!.cancel();
    watches[1]!.cancel();
    expect(await onServer()).toEqual([]);
    expect(removals()).toBe(1);
  });

  it('leaves watches of another kind on its path', async () => {
    const { client, onServer } = await setup();
    await client.create('/a');
    const [data, children] = [await client.watch('/a'), await client.watchChildren('/a')];
    data.cancel();
    expect(await onServer()).toEqual(['one-shot children /a']);
    await client.set('/a', 'x');
    await client.create('/a/b');
    expect(await children.changed).toMatchObject({ type: 'children-changed' });
  });

  it('leaves a persistent watch on its path', async () => {
    const { client, onServer } = await setup();
    await client.create('/a');
    const before = await client.watch('/a');
    const persistent = await client.addWatch('/a');
    const behind = await client.watch('/a');
    before.cancel();
    behind.cancel();
    expect(await onServer()).toEqual(['persistent data /a', 'persistent children /a']);
    await client.set('/a', 'x');
    const { value } = await persistent[Symbol.asyncIterator]().next();
    expect(value).toMatchObject({ type: 'changed', path: '/a' });
    persistent.close();
    expect(await onServer()).toEqual([]);
  });

  it('leaves the server when the read that set it was given up', async () => {
    const { fake, client, onServer } = await setup();
    await client.create('/a');
    for (const read of [
      (signal: AbortSignal) => client.watch('/a', { signal }),
      (signal: AbortSignal) => client.watch('/absent', { signal }),
      (signal: AbortSignal) => client.watchStat('/a', { signal }),
      (signal: AbortSignal) => client.watchChildren('/a', { signal }),
    ]) {
      const opcode = ['getData', 'exists', 'getChildren2'] as const;
      const delayed = fake.faults.next({ opcode }, 'delay');
      const stop = new AbortController();
      const watch = read(stop.signal);
      await delayed.struck;
      stop.abort(new Error('enough'));
      await expect(watch).rejects.toThrow('enough');
      delayed.release();
      expect(await onServer()).toEqual([]);
    }
  });

  it('is not asked for to be removed where the server has refused to set it', async () => {
    const { client, onServer, removals } = await setup();
    await expect(client.watchChildren('/absent')).rejects.toMatchObject({ code: 'NO_NODE' });
    await client.watch('/absent');
    expect(await onServer()).toEqual(['one-shot data /absent']);
    expect(removals()).toBe(0);
  });

  it('leaves the server when the node is found, and then may not be read', async () => {
    const { fake, client, onServer } = await setup();
    const other = later(await connect(fake.connectionString));
    // Not there for getData, there for exists, forbidden for the next getData.
    const delayed = fake.faults.next('getData', 'delay');
    const watch = client.watch('/a');
    await delayed.struck;
    const acl = [{ perms: 2, scheme: 'world', id: 'anyone' }];
    await other.create('/a', null, { acl });
    delayed.release();
    await expect(watch).rejects.toMatchObject({ code: 'NO_AUTH' });
    expect(await onServer()).toEqual([]);
  });

  it('is not taken from under a read of the same path that is under way', async () => {
    const { fake, client, onServer, removals } = await setup();
    await client.create('/a');
    const first = await client.watch('/a');
    const delayed = fake.faults.next('getData', 'delay');
    const second = client.watch('/a');
    await delayed.struck;
    first.cancel();
    delayed.release();
    const { changed } = await second;
    expect(await onServer()).toEqual(['one-shot data /a']);
    expect(removals()).toBe(0);
    await client.set('/a', 'x');
    expect(await changed).toMatchObject({ type: 'changed' });
  });

  it('leaves the server when the read that would have kept it is refused', async () => {
    const { fake, client, onServer } = await setup();
    await client.create('/a');
    const first = await client.watch('/a');
    const refused = fake.faults.next('getData', { type: 'errorCode', code: -102 });
    const second = client.watch('/a');
    await refused.struck;
    first.cancel();
    await expect(second).rejects.toMatchObject({ code: 'NO_AUTH' });
    expect(await onServer()).toEqual([]);
  });

  it('does not take the watch that is asked for right behind it', async () => {
    const { client } = await setup();
    await client.create('/a');
    const first = await client.watch('/a');
    first.cancel();
    const { changed } = await client.watch('/a');
    await client.set('/a', 'x');
    expect(await changed).toMatchObject({ type: 'changed' });
  });

  it('may have told meanwhile: the server has none to remove, and no caller is disturbed', async () => {
    const { fake, client, onServer, removals } = await setup();
    const other = later(await connect(fake.connectionString));
    await client.create('/a');
    const watch = await client.watch('/a');
    // Its event, and everything behind it, waits.
    const delayed = fake.faults.next('whoAmI', 'delay');
    const waiting = client.whoAmI();
    await delayed.struck;
    await other.set('/a', 'x');
    watch.cancel();
    const again = client.watch('/a');
    delayed.release();
    await waiting;
    expect(await watch.changed).toMatchObject({ type: 'lost', reason: 'cancelled' });
    expect(await onServer()).toEqual(['one-shot data /a']);
    expect(removals()).toBe(1);
    await other.set('/a', 'y');
    expect(await (await again).changed).toMatchObject({ type: 'changed' });
    expect(client.counters.outstanding).toBe(0);
  });

  it('is not set again by a reconnect, and not removed either', async () => {
    const { fake, clock, client, onServer, removals } = await setup();
    await client.create('/a');
    const [watch, kept] = [await client.watch('/a'), await client.watch('/b')];
    fake.dropConnections();
    await clock.runUntil('it is cut off', () => client.state === 'suspended');
    watch.cancel();
    await clock.runUntil('it is back', () => client.state === 'connected');
    expect(await onServer()).toEqual(['one-shot data /b']);
    expect(removals()).toBe(0);
    kept.cancel();
  });

  it('leaves the server when it is cancelled while a reconnect sets it again', async () => {
    const { fake, clock, client, onServer } = await setup();
    await client.create('/a');
    const watch = await client.watch('/a');
    const restoring = fake.faults.next('connect', 'delay');
    fake.dropConnections();
    let begun = false;
    void restoring.struck.then(() => {
      begun = true;
    });
    await clock.runUntil('it is coming back', () => begun);
    watch.cancel();
    restoring.release();
    await clock.runUntil('it is back', () => client.state === 'connected');
    expect(await onServer()).toEqual([]);
  });

  it('leaves the server though no more calls are taken', async () => {
    const { fake, client } = await setup({ maxInFlight: 1, maxQueuedRequests: 0 });
    await client.create('/a');
    const watch = await client.watch('/a');
    const delayed = fake.faults.next('whoAmI', 'delay');
    const waiting = client.whoAmI();
    await delayed.struck;
    await expect(client.sync()).rejects.toMatchObject({ code: 'QUEUE_FULL' });
    watch.cancel();
    delayed.release();
    await waiting;
    await until('it has left', () => fake.watches().length === 0);
  });

  it('stays on a server before 3.5, which would close the connection on a removal', async () => {
    const { client, onServer, removals } = await setup({ compatibility: '3.4' });
    (await client.watch('/a')).cancel();
    expect(await onServer()).toEqual(['one-shot data /a']);
    expect(removals()).toBe(0);
    await expect(client.removeWatches('/a')).rejects.toThrow(/need a server of 3.5/);
    await expect(client.checkWatches('/a')).rejects.toThrow(/need a server of 3.5/);
  });

  it('leaves a server of 3.5', async () => {
    const { client, onServer } = await setup({ compatibility: '3.5' });
    (await client.watch('/a')).cancel();
    expect(await onServer()).toEqual([]);
    // It would close the connection on these.
    await expect(client.addWatch('/a')).rejects.toThrow(/need a server of 3.6/);
    await expect(client.multiRead([{ get: '/a' }])).rejects.toThrow(/needs a server of 3.6/);
  });

  it('ends with follow() and followChildren()', async () => {
    const { client, onServer } = await setup();
    await client.create('/a');
    for (const values of [
      client.follow('/a'),
      client.follow('/absent'),
      client.followChildren('/a'),
      client.followChildren('/absent'),
    ]) {
      await values.next();
      const next = values.next();
      await client.sync();
      expect(await onServer()).toHaveLength(1);
      await values.return();
      await next;
      expect(await onServer()).toEqual([]);
    }
  });

  it('is not removed in a session that is over', async () => {
    const { fake, clock, client, onServer, removals } = await setup();
    const watch = await client.watch('/a');
    const told: WatchEvent[] = [];
    void watch.changed.then((event) => told.push(event));
    fake.expireSession(client.session!.id);
    await clock.runUntil('it has expired', () => told.length > 0);
    watch.cancel();
    await clock.runUntil('there is another session', () => client.state === 'connected');
    expect(told).toMatchObject([{ type: 'lost', reason: 'expired' }]);
    expect(await onServer()).toEqual([]);
    expect(removals()).toBe(0);
  });
});
