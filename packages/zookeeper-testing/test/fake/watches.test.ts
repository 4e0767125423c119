import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  addWatchModes,
  errorCodes,
  eventTypes,
} from '../../../zookeeper/src/protocol/constants.ts';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';
import { FakeZooKeeper } from '../../src/index.ts';
import type { Attached } from './bare-client.ts';
import { BareClient, open } from './bare-client.ts';

const { created, deleted, dataChanged, childrenChanged } = eventTypes;
let fake: FakeZooKeeper;
let client: Attached;
let other: Attached;
beforeEach(async () => {
  fake = await FakeZooKeeper.start();
  client = await BareClient.attach(fake.port);
  other = await BareClient.attach(fake.port);
});
afterEach(() => fake.close());

/** The events of `client` while `other` acts. */
async function told(act: () => Promise<unknown>): Promise<[number, string][]> {
  await act();
  const xid = client.send(requests.ping, {}, -2);
  const events: [number, string][] = [];
  for (;;) {
    const frame = await client.frame();
    client.frames.unshift(frame);
    if (new DataView(frame.buffer, frame.byteOffset).getInt32(0) === xid) break;
    const { type, path, zxid } = await client.event();
    expect(zxid).toBe(-1n);
    events.push([type, path]);
  }
  client.frames.shift();
  return events;
}

describe('a one-shot watch', () => {
  test('of data hears of the next change only', async () => {
    await client.create('/a');
    await client.get('/a', true);
    expect(await told(() => other.set('/a'))).toEqual([[dataChanged, '/a']]);
    expect(await told(() => other.set('/a'))).toEqual([]);
  });

  test('of an absent node hears of its creation', async () => {
    expect((await client.exists('/a', true)).error).toBe(errorCodes.noNode);
    expect(await told(() => other.create('/a'))).toEqual([[created, '/a']]);
  });

  test('that getData could not read is not set', async () => {
    await client.get('/a', true);
    expect(fake.watches()).toEqual([]);
  });

  test('of children hears of new and lost ones, not of data', async () => {
    await client.create('/a');
    await client.children('/a', true);
    expect(await told(() => other.set('/a'))).toEqual([]);
    expect(await told(() => other.create('/a/b'))).toEqual([[childrenChanged, '/a']]);
    await client.children('/a', true);
    expect(await told(() => other.delete('/a/b'))).toEqual([[childrenChanged, '/a']]);
  });

  test('of data and of children hear of the end by one event', async () => {
    await client.create('/a');
    await client.get('/a', true);
    await client.exists('/a', true);
    await client.children('/a', true);
    expect(await told(() => other.delete('/a'))).toEqual([[deleted, '/a']]);
    expect(fake.watches()).toEqual([]);
  });

  test('hears of one’s own write before its reply', async () => {
    await client.exists('/a', true);
    const xid = client.send(requests.create, { path: '/a', data: null, acl: open, flags: 0 });
    expect(await client.event()).toMatchObject({ type: created, state: 3, path: '/a' });
    expect((await client.reply(requests.create.response)).xid).toBe(xid);
  });
});

describe('a persistent watch', () => {
  test('hears of every change of its node and of its children', async () => {
    const { body } = await client.ask(requests.addWatch, { path: '/a', mode: 0 });
    expect(body).toEqual({ error: 0 });
    const events = await told(async () => {
      await other.create('/a');
      await other.set('/a');
      await other.create('/a/b');
      await other.set('/a/b');
      await other.delete('/a/b');
      await other.delete('/a');
    });
    expect(events).toEqual([
      [created, '/a'],
      [dataChanged, '/a'],
      [childrenChanged, '/a'],
      [childrenChanged, '/a'],
      [deleted, '/a'],
    ]);
  });

  test('that is recursive hears of everything below, but of no list of children', async () => {
    await client.ask(requests.addWatch, { path: '/a', mode: addWatchModes.persistentRecursive });
    const events = await told(async () => {
      await other.create('/a');
      await other.create('/a/b');
      await other.create('/a/b/c');
      await other.set('/a/b/c');
      await other.delete('/a/b/c');
      await other.create('/ab');
    });
    expect(events).toEqual([
      [created, '/a'],
      [created, '/a/b'],
      [created, '/a/b/c'],
      [dataChanged, '/a/b/c'],
      [deleted, '/a/b/c'],
    ]);
  });

  test('becomes one-shot when the same path is read with a watch, and the reverse', async () => {
    await client.create('/a');
    await client.ask(requests.addWatch, { path: '/a', mode: 0 });
    await client.get('/a', true);
    expect(await told(() => other.set('/a'))).toEqual([[dataChanged, '/a']]);
    expect(await told(() => other.set('/a'))).toEqual([]);
    await client.get('/a', true);
    await client.ask(requests.addWatch, { path: '/a', mode: 0 });
    expect(await told(() => other.set('/a'))).toEqual([[dataChanged, '/a']]);
    expect(await told(() => other.set('/a'))).toEqual([[dataChanged, '/a']]);
  });
});

test('removeWatches takes a watch of that type away, and refuses where there is none', async () => {
  await client.create('/a');
  await client.get('/a', true);
  await client.children('/a', true);
  expect((await client.ask(requests.checkWatches, { path: '/a', type: 2 })).error).toBe(0);
  expect((await client.ask(requests.removeWatches, { path: '/a', type: 2 })).error).toBe(0);
  expect(fake.watches()).toEqual([
    { sessionId: client.session.sessionId, path: '/a', kind: 'children', mode: 'one-shot' },
  ]);
  const { noWatcher } = errorCodes;
  expect((await client.ask(requests.removeWatches, { path: '/a', type: 2 })).error).toBe(noWatcher);
  expect((await client.ask(requests.checkWatches, { path: '/a', type: 2 })).error).toBe(noWatcher);
  expect((await client.ask(requests.removeWatches, { path: '/a', type: 3 })).error).toBe(0);
  expect(fake.watches()).toEqual([]);
});

test('watches end with the connection', async () => {
  await client.get('/', true);
  const { sessionId, password } = client.session;
  client = await BareClient.attach(fake.port, { sessionId, password });
  expect(fake.watches()).toEqual([]);
});

test('setWatches2 tells what was missed before its reply, and arms the rest', async () => {
  for (const path of ['/same', '/changed', '/children', '/gone', '/p']) await client.create(path);
  const relativeZxid = fake.lastZxid;
  await other.set('/changed');
  await other.create('/children/x');
  await other.create('/come');
  await other.delete('/gone');
  await other.set('/p');
  const xid = client.send(
    requests.setWatches2,
    {
      relativeZxid,
      dataWatches: ['/same', '/changed', '/gone'],
      existWatches: ['/come', '/never'],
      childWatches: ['/same', '/children', '/gone'],
      persistentWatches: ['/p'],
      persistentRecursiveWatches: ['/r'],
    },
    -8,
  );
  const events: [number, string][] = [];
  for (let i = 0; i < 5; i += 1) {
    const { type, path } = await client.event();
    events.push([type, path]);
  }
  expect(events).toEqual([
    [dataChanged, '/changed'],
    [deleted, '/gone'],
    [created, '/come'],
    [childrenChanged, '/children'],
    [deleted, '/gone'],
  ]);
  expect((await client.reply(requests.setWatches2.response)).xid).toBe(xid);
  const armed = fake.watches(client.session.sessionId);
  expect(armed.map(({ path, kind, mode }) => `${path} ${kind} ${mode}`).sort()).toEqual([
    '/never data one-shot',
    '/p children persistent',
    '/p data persistent',
    '/r children persistent-recursive',
    '/r data persistent-recursive',
    '/same children one-shot',
    '/same data one-shot',
  ]);
});

test('notifications carry the zxid of the change if so wanted', async () => {
  await using newer = await FakeZooKeeper.start({ notificationZxid: true });
  const one = await BareClient.attach(newer.port);
  await one.exists('/a', true);
  const xid = one.send(requests.create, { path: '/a', data: null, acl: open, flags: 0 });
  expect((await one.event()).zxid).toBe(newer.lastZxid);
  expect((await one.reply(requests.create.response)).xid).toBe(xid);
});

test('4 000 watches and 2 000 nodes are no trouble', async () => {
  await client.create('/many');
  const paths = Array.from({ length: 2_000 }, (_, i) => `/many/${i}`);
  for (const path of paths) client.send(requests.create, { path, data: null, acl: open, flags: 0 });
  for (const _ of paths) await client.reply(requests.create.response);
  for (const path of paths) {
    client.send(requests.getData, { path, watch: true });
    client.send(requests.getChildren2, { path, watch: true });
  }
  for (const _ of paths) {
    await client.reply(requests.getData.response);
    await client.reply(requests.getChildren2.response);
  }
  expect(fake.watches()).toHaveLength(4_000);
  for (const path of paths) other.send(requests.delete, { path, version: -1 });
  const told: string[] = [];
  for (const _ of paths) told.push((await client.event()).path);
  expect(told).toEqual(paths);
  for (const _ of paths) await other.reply(requests.delete.response);
  expect(fake.watches()).toEqual([]);
});
