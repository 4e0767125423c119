import { afterEach, beforeEach, expect, test } from 'vitest';
import { createFlags, eventTypes } from '../../../zookeeper/src/protocol/constants.ts';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';
import { FakeZooKeeper } from '../../src/index.ts';
import { BareClient } from './bare-client.ts';

let fake: FakeZooKeeper;
beforeEach(async () => {
  fake = await FakeZooKeeper.start({ tickTimeMs: 2000 });
});
afterEach(() => fake.close());

test('a session ends in the first tick after its timeout, not before', async () => {
  const client = await BareClient.attach(fake.port, { timeoutMs: 4000 });
  fake.advance(500);
  await client.quiet();
  fake.advance(4000);
  await client.create('/alive'); // any request counts
  fake.advance(5499);
  expect(fake.sessions).toHaveLength(1);
  await BareClient.attach(fake.port);
  fake.advance(1);
  expect(fake.sessions).toHaveLength(1);
  await client.closed;
});

test('the end of a session is one transaction, and its watchers hear of it', async () => {
  const client = await BareClient.attach(fake.port);
  const other = await BareClient.attach(fake.port);
  await client.create('/a', createFlags.ephemeral);
  await client.create('/b', createFlags.ephemeral);
  await other.get('/a', true);
  await other.get('/b', true);
  const before = fake.lastZxid;
  const { sessionId, password } = client.session;
  fake.expireSession(sessionId);
  expect(fake.lastZxid).toBe(before + 1n);
  expect(await other.event()).toMatchObject({ type: eventTypes.deleted, path: '/a' });
  expect(await other.event()).toMatchObject({ type: eventTypes.deleted, path: '/b' });
  await client.closed;
  const again = await BareClient.attach(fake.port, { sessionId, password });
  expect(again.session.sessionId).toBe(0n);
});

test('a client hears of its own expired nodes before it is closed', async () => {
  const client = await BareClient.attach(fake.port);
  await client.create('/a', createFlags.ephemeral);
  await client.get('/a', true);
  fake.expireSession(client.session.sessionId);
  expect(await client.event()).toMatchObject({ type: eventTypes.deleted, path: '/a' });
  await client.closed;
});

test('a session outlives its connection', async () => {
  const client = await BareClient.attach(fake.port);
  await client.create('/a', createFlags.ephemeral);
  client.close();
  await client.closed;
  fake.advance(3999);
  expect(fake.tree().has('/a')).toBe(true);
  const { sessionId, password } = client.session;
  const again = await BareClient.attach(fake.port, { sessionId, password });
  expect(again.session.sessionId).toBe(sessionId);
  expect(fake.sessions[0]).toMatchObject({ id: sessionId, connected: true });
});

test('what cannot be is refused', async () => {
  expect(() => fake.advance(-1)).toThrow(RangeError);
  expect(() => fake.advance(0.5)).toThrow(RangeError);
  expect(() => fake.expireSession(1n)).toThrow(RangeError);
  await expect(FakeZooKeeper.start({ tickTimeMs: 0 })).rejects.toThrow('tickTimeMs');
  const swapped = { minSessionTimeoutMs: 2, maxSessionTimeoutMs: 1 };
  await expect(FakeZooKeeper.start(swapped)).rejects.toThrow('minSessionTimeoutMs 2');
  await expect(FakeZooKeeper.start({ port: fake.port })).rejects.toThrow('EADDRINUSE');
});

test('time can be the real one', async () => {
  const options = { tickTimeMs: 20, minSessionTimeoutMs: 40, realTime: true };
  await using real = await FakeZooKeeper.start(options);
  const before = real.nowMs;
  while (real.nowMs === before) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(() => real.advance(1)).toThrow('realTime');
  const client = await BareClient.attach(real.port, { timeoutMs: 40 });
  await client.closed;
  expect(real.sessions).toEqual([]);
});

test('requests are logged, up to the bound', async () => {
  await using small = await FakeZooKeeper.start({ maxLoggedRequests: 2 });
  const client = await BareClient.attach(small.port);
  await client.create('/a');
  await client.ask(requests.multi, [
    { opcode: 13, body: { path: '/a', version: 0 } },
    { opcode: 2, body: { path: '/a', version: 0 } },
  ]);
  const { sessionId } = client.session;
  const common = { port: small.port, sessionId, path: '/a', atMs: small.nowMs };
  expect(small.requests).toEqual([
    { ...common, opcode: 'create2', xid: 1, paths: ['/a'] },
    { ...common, opcode: 'multi', xid: 2, paths: ['/a', '/a'] },
  ]);
});

test('close leaves nothing open', async () => {
  const client = await BareClient.attach(fake.port);
  await fake.close();
  await client.closed;
  await fake.close();
  const late = new BareClient(fake.port);
  await late.closed;
  expect(late.socket.bytesRead).toBe(0);
});
