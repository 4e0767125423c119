import { afterEach, beforeEach, expect, test } from 'vitest';
import { errorCodes, opcodes } from '../../../zookeeper/src/protocol/constants.ts';
import type { MultiOperation } from '../../../zookeeper/src/protocol/multi.ts';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';
import { FakeZooKeeper } from '../../src/index.ts';
import type { Attached } from './bare-client.ts';
import { BareClient, open } from './bare-client.ts';

let fake: FakeZooKeeper;
let client: Attached;
beforeEach(async () => {
  fake = await FakeZooKeeper.start();
  client = await BareClient.attach(fake.port);
});
afterEach(() => fake.close());

function create(path: string, flags = 0): MultiOperation {
  return { opcode: opcodes.create, body: { path, data: null, acl: open, flags } };
}
function check(path: string, version = -1): MultiOperation {
  return { opcode: opcodes.check, body: { path, version } };
}
function remove(path: string, version = -1): MultiOperation {
  return { opcode: opcodes.delete, body: { path, version } };
}
function set(path: string): MultiOperation {
  return { opcode: opcodes.setData, body: { path, data: null, version: -1 } };
}

test('all operations happen under one zxid, each seeing those before it', async () => {
  const { zxid, error, body } = await client.ask(requests.multi, [
    create('/a'),
    create('/a/s-', 2),
    set('/a'),
    check('/a', 1),
    remove('/a/s-0000000000'),
  ]);
  expect(error).toBe(0);
  expect(zxid).toBe(fake.lastZxid);
  expect(body?.map(({ opcode }) => opcode)).toEqual([1, 1, 5, 13, 2]);
  expect(body?.[1]).toEqual({ opcode: 1, body: { path: '/a/s-0000000000' } });
  const stat = fake.tree().get('/a')?.stat;
  expect(stat).toMatchObject({ czxid: zxid, mzxid: zxid, pzxid: zxid, version: 1, cversion: 2 });
});

test('one that fails takes all back, and the others are told 0 and -2', async () => {
  await client.create('/a');
  const before = fake.tree();
  const reply = await client.ask(requests.multi, [
    ...[create('/b'), set('/a'), create('/a/c'), remove('/a/c'), check('/a', 7), create('/d')],
  ]);
  expect(reply.error).toBe(0);
  const codes = [0, 0, 0, 0, errorCodes.badVersion, errorCodes.runtimeInconsistency];
  expect(reply.body).toEqual(codes.map((error) => ({ opcode: opcodes.error, error })));
  expect(fake.tree()).toEqual(before);
});

test('a refused multi tells no watch', async () => {
  await client.exists('/b', true);
  await client.ask(requests.multi, [create('/b'), check('/none')]);
  await client.quiet();
  expect(fake.watches()).toHaveLength(1);
});

test('watches are told before the reply', async () => {
  await client.exists('/b', true);
  client.send(requests.multi, [create('/b'), set('/b')]);
  expect(await client.event()).toMatchObject({ type: 1, path: '/b' });
  expect((await client.reply(requests.multi.response)).error).toBe(0);
});

test('containers and nodes with a TTL are answered as create2, and flags make containers', async () => {
  const ttl = { path: '/t', data: null, acl: open, flags: 5, ttlMs: 1000 };
  const { body } = await client.ask(requests.multi, [
    create('/c', 4),
    { opcode: opcodes.createContainer, body: { path: '/p', data: null, acl: open, flags: 0 } },
    { opcode: opcodes.create2, body: { path: '/2', data: null, acl: open, flags: 0 } },
    { opcode: opcodes.createTtl, body: ttl },
  ]);
  expect(body?.map(({ opcode }) => opcode)).toEqual([15, 1, 1, 15]);
});

test('a read, or the flags of a TTL without one, fail the request as a whole', async () => {
  const read = { opcode: opcodes.getData, body: { path: '/', watch: false } } as const;
  const { marshallingError } = errorCodes;
  expect((await client.ask(requests.multi, [create('/a'), read])).error).toBe(marshallingError);
  expect((await client.ask(requests.multi, [create('/a', 5)])).error).toBe(marshallingError);
  expect(fake.tree().has('/a')).toBe(false);
});

test('an empty multi is answered with nothing in it', async () => {
  expect((await client.ask(requests.multi, [])).body).toEqual([]);
});

test('multiRead puts an error in its own slot and goes on', async () => {
  await client.create('/a');
  const { body } = await client.ask(requests.multiRead, [
    { opcode: opcodes.getData, body: { path: '/a', watch: false } },
    { opcode: opcodes.getData, body: { path: '/none', watch: false } },
    { opcode: opcodes.getChildren, body: { path: '/', watch: false } },
  ]);
  expect(body?.[0]).toMatchObject({ opcode: opcodes.getData, body: { data: null } });
  expect(body?.[1]).toEqual({ opcode: opcodes.error, error: errorCodes.noNode });
  expect(body?.[2]).toEqual({ opcode: 8, body: { children: ['zookeeper', 'a'] } });
});
