import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { errorCodes } from '../../../zookeeper/src/protocol/constants.ts';
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

const a = { path: '/a', data: null, acl: open, flags: 0 };

describe('what is struck:', () => {
  test('the next request of that name, once', async () => {
    const fault = fake.faults.next('create', { type: 'errorCode', code: -127 });
    expect((await client.exists('/')).error).toBe(0);
    expect((await client.ask(requests.create, a)).error).toBe(-127);
    expect((await client.ask(requests.create, a)).error).toBe(0);
    expect(fault.hits).toBe(1);
    expect(await fault.struck).toMatchObject({ opcode: 'create', path: '/a' });
  });

  test('by path, by several names, by predicate, several times', async () => {
    const action = { type: 'errorCode', code: -1 } as const;
    fake.faults.next({ opcode: ['getData', 'exists'], path: /^\/zoo/, times: 2 }, action);
    expect((await client.exists('/')).error).toBe(0);
    expect((await client.exists('/zookeeper')).error).toBe(-1);
    expect((await client.get('/zookeeper')).error).toBe(-1);
    expect((await client.get('/zookeeper')).error).toBe(0);
    fake.faults.next({ path: '/' }, action);
    expect((await client.exists('/zookeeper')).error).toBe(0);
    expect((await client.exists('/')).error).toBe(-1);
    fake.faults.next({ predicate: ({ xid }) => xid === 99 }, action);
    expect((await client.exists('/')).error).toBe(0);
    expect((await client.ask(requests.exists, { path: '/', watch: false }, 99)).error).toBe(-1);
  });

  test('one of the paths of a multi', async () => {
    fake.faults.next({ path: '/b' }, { type: 'errorCode', code: -1 });
    const check = (path: string) => ({ opcode: 13 as const, body: { path, version: -1 } });
    expect((await client.ask(requests.multi, [check('/'), check('/b')])).error).toBe(-1);
  });

  test('no ping unless it is named, and none by a predicate that throws', async () => {
    const predicate = () => {
      throw new Error('a mistake in the test');
    };
    fake.faults.next({ predicate }, 'dropBefore');
    const fault = fake.faults.next({}, { type: 'errorCode', code: -1 });
    expect((await client.quiet()).error).toBe(0);
    fault.cancel();
    expect((await client.exists('/')).error).toBe(0);
    fake.faults.next('ping', { type: 'errorCode', code: -1 });
    expect((await client.quiet()).error).toBe(-1);
  });
});

test('dropBefore closes the connection and applies nothing', async () => {
  fake.faults.next('create', 'dropBefore');
  client.send(requests.create, a);
  await client.closed;
  expect(client.frames).toEqual([]);
  expect(fake.tree().has('/a')).toBe(false);
  expect(fake.sessions).toHaveLength(1);
});

test('dropAfter applies, and closes the connection without a reply', async () => {
  fake.faults.next('create', 'dropAfter');
  client.send(requests.create, a);
  await client.closed;
  expect(client.frames).toEqual([]);
  expect(fake.tree().has('/a')).toBe(true);
});

test('what was answered before a drop still arrives', async () => {
  fake.faults.next('create', 'dropBefore');
  client.send(requests.exists, { path: '/', watch: false });
  client.send(requests.create, a);
  await client.closed;
  expect(client.frames).toHaveLength(1);
});

test('delay holds the reply and what follows, not what was told before', async () => {
  await client.exists('/a', true);
  const fault = fake.faults.next('create', 'delay');
  const xid = client.send(requests.create, a);
  await fault.struck;
  expect(await client.event()).toMatchObject({ type: 1, path: '/a' });
  expect(fake.tree().has('/a')).toBe(true);
  client.send(requests.ping, {}, -2);
  const other = await BareClient.attach(fake.port);
  await other.quiet();
  expect(client.frames).toEqual([]);
  fault.release();
  expect((await client.reply(requests.create.response)).xid).toBe(xid);
  expect((await client.reply(requests.ping.response)).xid).toBe(-2);
});

test('a delay that was released before it strikes has no effect', async () => {
  const fault = fake.faults.next('create', 'delay');
  fault.release();
  expect((await client.ask(requests.create, a)).error).toBe(0);
});

test('a session that expires during a delay closes its connection', async () => {
  const fault = fake.faults.next('create', 'delay');
  client.send(requests.create, a);
  await fault.struck;
  fake.expireSession(client.session.sessionId);
  await client.closed;
  expect(client.frames).toEqual([]);
});

test.each([
  ['half of it', undefined, 18],
  ['of the length', 3, 3],
  ['the length alone', 4, 4],
])('halfFrame sends the beginning of the reply, %s', async (_, bytes, length) => {
  const before = client.socket.bytesRead;
  const action = bytes === undefined ? 'halfFrame' : ({ type: 'halfFrame', bytes } as const);
  fake.faults.next('exists', action);
  client.send(requests.exists, { path: '/', watch: false });
  await client.closed;
  const whole = 4 + 16 + 68;
  expect(client.socket.bytesRead - before).toBe(bytes === undefined ? whole / 2 : length);
});

test('wrongXid answers another request', async () => {
  fake.faults.next('exists', 'wrongXid');
  const xid = client.send(requests.exists, { path: '/', watch: false });
  expect((await client.reply(requests.exists.response)).xid).toBe(xid + 1);
  fake.faults.next('exists', { type: 'wrongXid', xid: -77 });
  client.send(requests.exists, { path: '/', watch: false });
  expect((await client.reply(requests.exists.response)).xid).toBe(-77);
});

test('errorCode answers with any code', async () => {
  for (const code of [errorCodes.sessionMoved, errorCodes.throttled, 12_345]) {
    fake.faults.next('exists', { type: 'errorCode', code });
    expect((await client.exists('/')).error).toBe(code);
  }
});

test('expire ends the session and the connection', async () => {
  fake.faults.next('create', 'expire');
  client.send(requests.create, a);
  await client.closed;
  expect(fake.sessions).toEqual([]);
  expect(fake.tree().has('/a')).toBe(false);
});

test('moved answers -118 and closes', async () => {
  fake.faults.next('create', 'moved');
  expect((await client.ask(requests.create, a)).error).toBe(errorCodes.sessionMoved);
  await client.closed;
});

test('garbage takes the place of a reply', async () => {
  const bytes = new Uint8Array([0, 0, 0, 2, 7, 7]);
  fake.faults.next('exists', { type: 'garbage', bytes });
  client.send(requests.exists, { path: '/', watch: false });
  expect([...(await client.frame())]).toEqual([7, 7]);
  expect((await client.exists('/')).error).toBe(0);
});

test('silence stops one connection, which stays open', async () => {
  const fault = fake.faults.next('create', 'silence');
  client.send(requests.create, a);
  await fault.struck;
  client.send(requests.ping, {}, -2);
  const other = await BareClient.attach(fake.port);
  await other.quiet();
  fake.expireSession(client.session.sessionId);
  await other.quiet();
  expect(client.frames).toEqual([]);
  expect(client.isClosed).toBe(false);
  expect(fake.tree().has('/a')).toBe(false);
});

test('a silent server accepts, says nothing, and goes on where it stopped', async () => {
  fake.silence();
  client.send(requests.create, a);
  const late = new BareClient(fake.port);
  late.write(late.greetBytes());
  const knock = new BareClient(fake.port);
  await new Promise((resolve) => knock.socket.once('connect', resolve));
  expect([client.frames, late.frames]).toEqual([[], []]);
  expect(fake.tree().has('/a')).toBe(false);
  fake.unsilence();
  expect((await client.reply(requests.create.response)).error).toBe(0);
  expect(await late.frame()).toHaveLength(37);
});

test('an end during silence shows only afterwards', async () => {
  fake.silence();
  fake.expireSession(client.session.sessionId);
  const knock = new BareClient(fake.port);
  await new Promise((resolve) => knock.socket.once('connect', resolve));
  expect(client.isClosed).toBe(false);
  fake.unsilence();
  await client.closed;
});

test('refuse stops listening, listen begins again on the same port', async () => {
  const { port } = fake;
  await fake.refuse();
  expect((await client.quiet()).error).toBe(0);
  const refused = new BareClient(port);
  const code = await new Promise((resolve) => {
    refused.socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
  });
  expect(code).toBe('ECONNREFUSED');
  await fake.listen();
  expect(fake.port).toBe(port);
  expect((await BareClient.attach(port)).session.timeoutMs).toBe(4000);
});

test('closeOnConnect closes as many connections as it was told', async () => {
  fake.faults.closeOnConnect(2);
  for (let i = 0; i < 2; i += 1) {
    const closed = new BareClient(fake.port);
    closed.write(closed.greetBytes());
    await closed.closed;
    expect(closed.frames).toEqual([]);
  }
  expect((await BareClient.attach(fake.port)).session.timeoutMs).toBe(4000);
});

test('dropConnections closes all of them, and the sessions live on', async () => {
  fake.dropConnections();
  await client.closed;
  expect(fake.sessions).toHaveLength(1);
  expect(fake.sessions[0]?.connected).toBe(false);
});

describe('a handshake can be struck too:', () => {
  test('dropBefore begins no session, dropAfter does', async () => {
    for (const [action, sessions] of [
      ['dropBefore', 1],
      ['dropAfter', 2],
    ] as const) {
      fake.faults.next('connect', action);
      const late = new BareClient(fake.port);
      late.write(late.greetBytes());
      await late.closed;
      expect(late.frames).toEqual([]);
      expect(fake.sessions).toHaveLength(sessions);
    }
  });

  test('errorCode is a bare header', async () => {
    fake.faults.next('connect', { type: 'errorCode', code: errorCodes.notReadOnly });
    const late = new BareClient(fake.port);
    late.write(late.greetBytes());
    const reply = await late.reply(requests.ping.response);
    expect(reply).toMatchObject({ xid: 0, error: errorCodes.notReadOnly });
  });

  test('expire ends the session that attaches', async () => {
    const { sessionId, password } = client.session;
    fake.faults.next('connect', 'expire');
    const late = await BareClient.attach(fake.port, { sessionId, password });
    expect(late.session.sessionId).toBe(0n);
    expect(fake.sessions).toEqual([]);
  });
});

test('clear forgets what has not struck, and lets delayed replies go', async () => {
  const fault = fake.faults.next('create', 'delay');
  const xid = client.send(requests.create, a);
  await fault.struck;
  fake.faults.next('exists', 'dropBefore');
  fake.faults.closeOnConnect();
  fake.faults.clear();
  expect((await client.reply(requests.create.response)).xid).toBe(xid);
  expect((await client.exists('/')).error).toBe(0);
  await BareClient.attach(fake.port);
});
