import { afterEach, beforeEach, expect, test } from 'vitest';
import { acl } from '../../../zookeeper/src/acl.ts';
import { errorCodes } from '../../../zookeeper/src/protocol/constants.ts';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';
import { FakeZooKeeper } from '../../src/index.ts';
import type { Attached } from './bare-client.ts';
import { BareClient } from './bare-client.ts';

let fake: FakeZooKeeper;
let client: Attached;
beforeEach(async () => {
  const superDigest = acl.digest('super', 'secret').id;
  fake = await FakeZooKeeper.start({ superDigest });
  client = await BareClient.attach(fake.port);
});
afterEach(() => fake.close());

function authenticate(who: BareClient, scheme: string, credentials: string) {
  const auth = new TextEncoder().encode(credentials);
  return who.ask(requests.auth, { type: 0, scheme, auth }, -4);
}

test('auth is answered with xid -4 and zxid 0', async () => {
  const { xid, zxid, error } = await authenticate(client, 'digest', 'joe:pw');
  expect({ xid, zxid, error }).toEqual({ xid: -4, zxid: 0n, error: 0 });
});

test('an unknown scheme is answered with -115 and a close', async () => {
  const { error } = await authenticate(client, 'nonsense', 'x');
  expect(error).toBe(errorCodes.authFailed);
  await client.closed;
});

test('whoAmI lists the address and the users', async () => {
  await authenticate(client, 'digest', 'joe:pw');
  await authenticate(client, 'digest', 'joe:pw');
  expect((await client.ask(requests.whoAmI, {})).body?.identities).toEqual([
    { scheme: 'ip', user: '127.0.0.1' },
    { scheme: 'digest', user: 'joe' },
  ]);
});

test('each permission is asked of the right node', async () => {
  await client.create('/a', 0, null, [acl.digest('joe', 'pw'), acl.world(1)]);
  const { noAuth } = errorCodes;
  expect((await client.get('/a')).error).toBe(0);
  expect((await client.set('/a')).error).toBe(noAuth);
  expect((await client.create('/a/b')).error).toBe(noAuth);
  const setAcl = { path: '/a', acl: [acl.world()], version: -1 };
  expect((await client.ask(requests.setAcl, setAcl)).error).toBe(noAuth);
  await authenticate(client, 'digest', 'joe:pw');
  expect((await client.set('/a')).error).toBe(0);
  expect((await client.create('/a/b')).error).toBe(0);
  const stranger = await BareClient.attach(fake.port);
  expect((await stranger.delete('/a/b')).error).toBe(noAuth);
  expect((await client.delete('/a/b')).error).toBe(0);
  expect((await client.delete('/a')).error).toBe(0);
});

test('getACL hides the hash from clients that may not set it', async () => {
  await client.create('/a', 0, null, [acl.digest('joe', 'pw'), acl.world(1)]);
  const { body } = await client.ask(requests.getAcl, { path: '/a' });
  expect(body?.acl[0]).toEqual({ perms: 31, scheme: 'digest', id: 'joe:x' });
  await authenticate(client, 'digest', 'joe:pw');
  const shown = await client.ask(requests.getAcl, { path: '/a' });
  expect(shown.body?.acl[0]).toEqual(acl.digest('joe', 'pw'));
});

test('auth stands for the identities of the creator', async () => {
  expect((await client.create('/a', 0, null, [acl.auth()])).error).toBe(errorCodes.invalidAcl);
  await authenticate(client, 'digest', 'joe:pw');
  await client.create('/a', 0, null, [acl.auth(3)]);
  expect(fake.tree().get('/a')?.acl).toEqual([acl.digest('joe', 'pw', 3)]);
});

test.each([
  ['null', null],
  ['an empty list', []],
  ['a scheme that nobody knows', [{ perms: 31, scheme: 'foo', id: 'x' }]],
  ['world:someone', [{ perms: 31, scheme: 'world', id: 'someone' }]],
  ['a digest without a hash', [{ perms: 31, scheme: 'digest', id: 'joe' }]],
  ['no address', [{ perms: 31, scheme: 'ip', id: 'localhost' }]],
])('%s is no ACL', async (_, list) => {
  const request = { path: '/a', data: null, acl: list, flags: 0 };
  const { error } = await client.ask(requests.create, request);
  expect(error).toBe(errorCodes.invalidAcl);
});

test('networks match addresses', async () => {
  await client.create('/in', 0, null, [acl.ip('127.0.0.0/8')]);
  await client.create('/out', 0, null, [acl.ip('10.0.0.0/8')]);
  expect((await client.get('/in')).error).toBe(0);
  expect((await client.get('/out')).error).toBe(errorCodes.noAuth);
});

test('no ACL applies to the super user', async () => {
  await client.create('/a', 0, null, [acl.digest('joe', 'pw')]);
  await authenticate(client, 'digest', 'super:secret');
  expect((await client.get('/a')).error).toBe(0);
});

test('a check in a multi needs the permission to read', async () => {
  await client.create('/a', 0, null, [acl.digest('joe', 'pw')]);
  const { body } = await client.ask(requests.multi, [
    { opcode: 13, body: { path: '/a', version: 0 } },
  ]);
  expect(body).toEqual([{ opcode: -1, error: errorCodes.noAuth }]);
});
