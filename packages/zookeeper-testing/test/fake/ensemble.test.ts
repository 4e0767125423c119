import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { errorCodes, eventTypes } from '../../../zookeeper/src/protocol/constants.ts';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';
import type { FakeRequest, FakeServer } from '../../src/index.ts';
import { FakeZooKeeper } from '../../src/index.ts';
import { BareClient, open } from './bare-client.ts';

let fake: FakeZooKeeper;
let second: FakeServer;
beforeEach(async () => {
  fake = await FakeZooKeeper.start();
  second = await fake.addServer();
});
afterEach(() => fake.close());

test('all servers show the same nodes and tell of the same changes', async () => {
  expect(fake.connectionString).toBe(`zk://127.0.0.1:${fake.port},127.0.0.1:${second.port}`);
  expect(fake.servers).toHaveLength(2);
  const one = await BareClient.attach(fake.port);
  const two = await BareClient.attach(second.port);
  expect(one.session.sessionId >> 56n).not.toBe(two.session.sessionId >> 56n);
  await two.exists('/a', true);
  const { zxid } = await one.create('/a');
  expect(await two.event()).toMatchObject({ type: eventTypes.created, path: '/a' });
  expect((await two.exists('/a')).body?.stat.czxid).toBe(zxid);
});

test('a fault can strike on one server alone', async () => {
  const one = await BareClient.attach(fake.port);
  const two = await BareClient.attach(second.port);
  const predicate = ({ port }: FakeRequest) => port === second.port;
  fake.faults.next({ opcode: 'exists', predicate }, { type: 'errorCode', code: -1 });
  expect((await one.exists('/')).error).toBe(0);
  expect((await two.exists('/')).error).toBe(-1);
});

test('a session that has moved reads on the old connection, and a write closes it', async () => {
  const old = await BareClient.attach(fake.port);
  const { sessionId, password } = old.session;
  const moved = await BareClient.attach(second.port, { sessionId, password });
  expect(moved.session.sessionId).toBe(sessionId);
  expect((await old.exists('/')).error).toBe(0);
  old.send(requests.create, { path: '/old', data: null, acl: open, flags: 0 });
  await old.closed;
  expect(old.frames).toEqual([]);
  expect(fake.tree().has('/old')).toBe(false);
  expect((await moved.create('/new')).error).toBe(0);
  await BareClient.attach(fake.port, { sessionId, password });
  moved.send(requests.setData, { path: '/new', data: null, version: -1 });
  await moved.closed;
});

test('closeSession ends a session even where it has moved away from', async () => {
  const old = await BareClient.attach(fake.port);
  const { sessionId, password } = old.session;
  const moved = await BareClient.attach(second.port, { sessionId, password });
  expect((await old.ask(requests.closeSession, {})).error).toBe(0);
  await Promise.all([old.closed, moved.closed]);
  expect(fake.sessions).toEqual([]);
});

test('the end of a session closes its connections on every server', async () => {
  const old = await BareClient.attach(fake.port);
  const { sessionId, password } = old.session;
  const moved = await BareClient.attach(second.port, { sessionId, password });
  fake.expireSession(sessionId);
  await Promise.all([old.closed, moved.closed]);
});

describe('a server that lags', () => {
  test('shows the old nodes and is silent about new ones, until it has caught up', async () => {
    const one = await BareClient.attach(fake.port);
    await one.create('/a');
    const two = await BareClient.attach(second.port);
    await two.get('/a', true);
    const seen = fake.lastZxid;
    second.lag(true);
    await one.set('/a');
    await one.create('/b');
    const stale = await two.exists('/a');
    expect(stale).toMatchObject({ zxid: seen, body: { stat: { version: 0 } } });
    expect((await two.get('/b')).error).toBe(errorCodes.noNode);
    second.lag(false);
    expect(await two.event()).toMatchObject({ type: eventTypes.dataChanged, path: '/a' });
    expect((await two.get('/b')).zxid).toBe(fake.lastZxid);
  });

  test('refuses clients that have seen more', async () => {
    const one = await BareClient.attach(fake.port);
    second.lag(true);
    const { zxid } = await one.create('/a');
    const { sessionId, password } = one.session;
    const ahead = new BareClient(second.port);
    ahead.write(ahead.greetBytes({ sessionId, password, lastZxidSeen: zxid }));
    await ahead.closed;
    expect(ahead.frames).toEqual([]);
    second.lag(false);
    const moved = await BareClient.attach(second.port, { sessionId, password, lastZxidSeen: zxid });
    expect(moved.session.sessionId).toBe(sessionId);
  });

  test.each(['create', 'sync'] as const)('answers a %s once it has caught up', async (name) => {
    const one = await BareClient.attach(fake.port);
    const two = await BareClient.attach(second.port);
    await two.exists('/a', true);
    second.lag(true);
    await one.create('/b');
    const xid =
      name === 'sync'
        ? two.send(requests.sync, { path: '/' })
        : two.send(requests.create, { path: '/a', data: null, acl: open, flags: 0 });
    two.send(requests.exists, { path: '/b', watch: false });
    const third = await BareClient.attach(second.port);
    expect((await third.exists('/b')).error).toBe(errorCodes.noNode);
    expect(two.frames).toEqual([]);
    expect(fake.tree().has('/a')).toBe(name === 'create');
    second.lag(false);
    if (name === 'create') expect((await two.event()).path).toBe('/a');
    expect((await two.reply(requests.sync.response)).xid).toBe(xid);
    expect((await two.reply(requests.exists.response)).error).toBe(0);
  });
});

describe('a server without a quorum', () => {
  test('closes its connections, and those of clients that do not accept it', async () => {
    const before = await BareClient.attach(second.port);
    second.readOnly(true);
    await before.closed;
    const refused = new BareClient(second.port);
    refused.write(refused.greetBytes());
    await refused.closed;
    expect(refused.frames).toEqual([]);
    expect((await BareClient.attach(fake.port)).session.readOnly).toBe(false);
  });

  test('serves reads to clients that do, and refuses writes with -119', async () => {
    second.readOnly(true);
    const client = await BareClient.attach(second.port, { readOnly: true });
    expect(client.session).toMatchObject({ readOnly: true, timeoutMs: 4000 });
    expect((await client.exists('/')).error).toBe(0);
    expect((await client.create('/a')).error).toBe(errorCodes.notReadOnly);
    expect((await client.ask(requests.sync, { path: '/' })).error).toBe(errorCodes.notReadOnly);
    expect((await client.ask(requests.closeSession, {})).error).toBe(0);
    await client.closed;
  });

  test('lets a client come back to a session that began there', async () => {
    second.readOnly(true);
    const { session } = await BareClient.attach(second.port, { readOnly: true });
    const { sessionId, password } = session;
    const wrong = await BareClient.attach(second.port, { sessionId, readOnly: true });
    expect(wrong.session.sessionId).toBe(0n);
    const again = await BareClient.attach(second.port, { sessionId, password, readOnly: true });
    expect(again.session).toEqual(session);
    await again.ask(requests.closeSession, {});
    const late = await BareClient.attach(second.port, { sessionId, password, readOnly: true });
    expect(late.session.sessionId).toBe(0n);
  });

  test('does not take over a session', async () => {
    const { session } = await BareClient.attach(second.port);
    const { sessionId, password } = session;
    second.readOnly(true);
    const client = await BareClient.attach(second.port, { sessionId, password, readOnly: true });
    expect(client.session).toMatchObject({ sessionId: 0n, timeoutMs: 0, readOnly: true });
    second.readOnly(false);
    const again = await BareClient.attach(second.port, { sessionId, password, readOnly: true });
    expect(again.session).toMatchObject({ sessionId, readOnly: false });
  });

  test('without local sessions answers the handshake with a bare header', async () => {
    second.readOnly(true, { localSessions: false });
    const client = new BareClient(second.port);
    client.write(client.greetBytes({ readOnly: true }));
    expect(await client.reply(requests.ping.response)).toMatchObject({
      xid: 0,
      error: errorCodes.notReadOnly,
    });
  });
});
