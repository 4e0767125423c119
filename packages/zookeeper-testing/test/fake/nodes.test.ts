import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFlags, errorCodes } from '../../../zookeeper/src/protocol/constants.ts';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';
import { FakeZooKeeper } from '../../src/index.ts';
import type { Attached } from './bare-client.ts';
import { BareClient, open } from './bare-client.ts';

let fake: FakeZooKeeper;
let client: Attached;
beforeEach(async () => {
  fake = await FakeZooKeeper.start({ tickTimeMs: 1000 });
  client = await BareClient.attach(fake.port, { timeoutMs: 20_000 });
});
afterEach(() => fake.close());

test('a new server has the nodes of its own', () => {
  const tree = fake.tree();
  expect([...tree.keys()].sort()).toEqual([
    '/',
    '/zookeeper',
    '/zookeeper/config',
    '/zookeeper/quota',
  ]);
  expect(tree.get('/')?.stat).toMatchObject({ cversion: -1, numChildren: 1, czxid: 0n });
  expect(tree.get('/zookeeper')?.stat).toMatchObject({ cversion: -2, numChildren: 2 });
});

test('a node keeps count of what happens to it', async () => {
  const created = await client.create('/a', 0, new Uint8Array([1, 2]));
  const { zxid } = created;
  const ctime = fake.nowMs;
  expect(created.body).toEqual({
    path: '/a',
    stat: {
      ...{ czxid: zxid, mzxid: zxid, pzxid: zxid, ctime, mtime: ctime },
      ...{ version: 0, cversion: 0, aversion: 0, ephemeralOwner: 0n },
      ...{ dataLength: 2, numChildren: 0 },
    },
  });
  fake.advance(10);
  const set = await client.set('/a', 0, new Uint8Array([1]));
  expect(set.body?.stat).toMatchObject({ version: 1, mzxid: zxid + 1n, mtime: ctime + 10, ctime });
  const child = await client.create('/a/b');
  expect((await client.exists('/a')).body?.stat).toMatchObject({
    ...{ cversion: 1, numChildren: 1, pzxid: child.zxid, mzxid: set.zxid },
  });
  const gone = await client.delete('/a/b');
  expect((await client.exists('/a')).body?.stat).toMatchObject({
    ...{ cversion: 2, numChildren: 0, pzxid: gone.zxid, mzxid: set.zxid },
  });
  const setAcl = await client.ask(requests.setAcl, { path: '/a', acl: open, version: 0 });
  expect(setAcl.body?.stat).toMatchObject({ aversion: 1, version: 1, mzxid: set.zxid });
});

test('null and empty data stay distinct', async () => {
  await client.create('/null', 0, null);
  await client.create('/empty', 0, new Uint8Array(0));
  expect((await client.get('/null')).body?.data).toBeNull();
  expect((await client.get('/empty')).body?.data).toHaveLength(0);
  expect(fake.tree().get('/null')?.data).toBeNull();
});

test('the sequence is the parent’s count of creates, whatever the prefix', async () => {
  await client.create('/p');
  const paths: (string | undefined)[] = [];
  for (const [name, flags] of [
    ['/p/a-', createFlags.persistentSequential],
    ['/p/plain', createFlags.persistent],
    ['/p/b-', createFlags.ephemeralSequential],
  ] as const) {
    paths.push((await client.create(name, flags)).body?.path);
  }
  await client.delete('/p/plain');
  paths.push((await client.create('/p/', createFlags.persistentSequential)).body?.path);
  expect(paths).toEqual(['/p/a-0000000000', '/p/plain', '/p/b-0000000002', '/p/0000000003']);
});

test('ephemeral nodes have an owner, no children, and end with the session', async () => {
  const created = await client.create('/e', createFlags.ephemeral);
  expect(created.body?.stat.ephemeralOwner).toBe(client.session.sessionId);
  expect((await client.create('/e/c')).error).toBe(errorCodes.noChildrenForEphemerals);
  const { body } = await client.ask(requests.getEphemerals, { prefixPath: '/' });
  expect(body?.ephemerals).toEqual(['/e']);
  expect(fake.sessions[0]?.ephemerals).toEqual(['/e']);
  await client.ask(requests.closeSession, {});
  expect(fake.tree().has('/e')).toBe(false);
  expect(fake.sessions).toEqual([]);
});

test('a container goes once it was used and is empty', async () => {
  const flags = createFlags.container;
  const request = { path: '/c', data: null, acl: open, flags };
  const { body } = await client.ask(requests.createContainer, request);
  expect(body?.stat.ephemeralOwner).toBe(0n);
  fake.advance(2000);
  expect(fake.tree().has('/c')).toBe(true);
  await client.create('/c/child');
  await client.delete('/c/child');
  fake.advance(1000);
  expect(fake.tree().has('/c')).toBe(false);
});

test('a node with a TTL goes when no client has touched it for so long', async () => {
  const flags = createFlags.persistentWithTtl;
  const request = { path: '/t', data: null, acl: open, flags, ttlMs: 1500 };
  const { body } = await client.ask(requests.createTtl, request);
  expect(body?.stat.ephemeralOwner).toBe(0n);
  fake.advance(1000);
  await client.set('/t');
  fake.advance(1000);
  expect(fake.tree().has('/t')).toBe(true);
  fake.advance(1000);
  expect(fake.tree().has('/t')).toBe(false);
  for (const ttlMs of [0, -1, 2 ** 40]) {
    const { error } = await client.ask(requests.createTtl, { ...request, ttlMs });
    expect(error).toBe(errorCodes.badArguments);
  }
  const without = await client.ask(requests.createTtl, { ...request, flags: 0, ttlMs: -1 });
  expect(without.error).toBe(errorCodes.badArguments);
  expect((await client.create('/t', flags)).error).toBe(errorCodes.badArguments);
});

test('getChildren, getAllChildrenNumber and sync answer', async () => {
  await client.create('/a');
  await client.create('/a/b');
  await client.create('/a/b/c');
  await client.create('/ab');
  expect((await client.children('/a')).body).toMatchObject({ children: ['b'] });
  const old = await client.ask(requests.getChildren, { path: '/a', watch: false });
  expect(old.body).toEqual({ children: ['b'] });
  const count = await client.ask(requests.getAllChildrenNumber, { path: '/a' });
  expect(count.body).toEqual({ totalNumber: 2 });
  expect((await client.ask(requests.sync, { path: '/a' })).body).toEqual({ path: '/a' });
});

test('a failed write takes a zxid and changes nothing', async () => {
  const before = fake.lastZxid;
  const { zxid, error } = await client.create('/no/parent');
  expect({ zxid, error }).toEqual({ zxid: before + 1n, error: errorCodes.noNode });
  expect((await client.quiet()).zxid).toBe(before + 1n);
});

describe('is refused:', () => {
  test.each([
    ['a', errorCodes.badArguments],
    ['/', errorCodes.nodeExists],
    ['/a', errorCodes.nodeExists],
    ['/a/', errorCodes.badArguments],
    ['/a//b', errorCodes.noNode],
    ['/a/..', errorCodes.badArguments],
    ['/a/.', errorCodes.badArguments],
    ['/a/b\0', errorCodes.badArguments],
    ['/a/\ud800', errorCodes.badArguments],
    ['/a/\u001f', errorCodes.badArguments],
    ['/none/b', errorCodes.noNode],
  ])('creating %j with %i', async (path, code) => {
    await client.create('/a');
    // UTF-8 has no lone surrogate: it becomes U+FFFD, which is refused as well.
    expect((await client.create(path)).error).toBe(code);
  });

  test('unknown flags', async () => {
    expect((await client.create('/a', 7)).error).toBe(errorCodes.badArguments);
    expect((await client.create('/a', -1)).error).toBe(errorCodes.badArguments);
  });

  test('another version, an absent node, a parent with children', async () => {
    await client.create('/a');
    await client.create('/a/b');
    expect((await client.set('/a', 1)).error).toBe(errorCodes.badVersion);
    expect((await client.delete('/a', 1)).error).toBe(errorCodes.badVersion);
    expect((await client.delete('/a', 0)).error).toBe(errorCodes.notEmpty);
    expect((await client.set('/none')).error).toBe(errorCodes.noNode);
    expect((await client.delete('/none')).error).toBe(errorCodes.noNode);
    expect((await client.get('/none')).error).toBe(errorCodes.noNode);
    expect((await client.children('/none')).error).toBe(errorCodes.noNode);
    expect((await client.delete('/')).error).toBe(errorCodes.badArguments);
    expect((await client.delete('/zookeeper/quota')).error).toBe(errorCodes.badArguments);
  });

  test('reconfig, which is disabled', async () => {
    const nothing = { joiningServers: null, leavingServers: null, newMembers: null };
    const { error } = await client.ask(requests.reconfig, { ...nothing, curConfigId: -1n });
    expect(error).toBe(errorCodes.reconfigDisabled);
  });

  test('an unknown opcode, with -1 as zxid and a close', async () => {
    const reply = await client.ask({ ...requests.ping, opcode: 999 }, {});
    expect(reply).toMatchObject({ error: errorCodes.unimplemented, zxid: -1n });
    await client.closed;
  });

  test('a body that cannot be read', async () => {
    const kind = { ...requests.ping, opcode: requests.getData.opcode };
    expect((await client.ask(kind, {})).error).toBe(errorCodes.marshallingError);
  });
});
