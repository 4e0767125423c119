import { afterEach, beforeEach, expect, test } from 'vitest';
import { requests } from '../../src/protocol/requests.ts';
import { FakeZooKeeper } from '../../src/testing/index.ts';
import { BareClient } from './bare-client.ts';

let fake: FakeZooKeeper;
beforeEach(async () => {
  fake = await FakeZooKeeper.start({ tickTimeMs: 2000 });
});
afterEach(() => fake.close());

test.each([
  [0, 4000],
  [10_000, 10_000],
  [60_000, 40_000],
])('a timeout of %i ms becomes %i', async (timeoutMs, granted) => {
  const { session } = await BareClient.attach(fake.port, { timeoutMs });
  expect(session.timeoutMs).toBe(granted);
  expect(session.sessionId).not.toBe(0n);
  expect(session.password).toHaveLength(16);
});

test('the byte for read-only is answered only to those who send it', async () => {
  for (const [short, length] of [
    [false, 37],
    [true, 36],
  ] as const) {
    const client = new BareClient(fake.port);
    client.write(client.greetBytes({ short }));
    expect(await client.frame()).toHaveLength(length);
  }
});

test('a null password is accepted for a new session', async () => {
  const { session } = await BareClient.attach(fake.port, { password: null });
  expect(session.timeoutMs).toBe(4000);
});

test('requests in the same write are answered behind the response', async () => {
  const client = new BareClient(fake.port);
  client.write(client.greetBytes());
  const xid = client.send(requests.exists, { path: '/', watch: false });
  expect(await client.frame()).toHaveLength(37);
  expect((await client.reply(requests.exists.response)).xid).toBe(xid);
});

test('re-attaching closes the old connection and negotiates again', async () => {
  const first = await BareClient.attach(fake.port, { timeoutMs: 10_000 });
  await first.create('/e', 1);
  const { sessionId, password } = first.session;
  const second = await BareClient.attach(fake.port, { sessionId, password, timeoutMs: 20_000 });
  expect(second.session).toEqual({ ...first.session, timeoutMs: 20_000 });
  await first.closed;
  expect((await second.exists('/e')).error).toBe(0);
});

test('a wrong password is told that the session is gone, closes its connection, and not it', async () => {
  const first = await BareClient.attach(fake.port);
  const { sessionId, password } = first.session;
  const wrong = await BareClient.attach(fake.port, { sessionId });
  expect(wrong.session).toMatchObject({ sessionId: 0n, timeoutMs: 0 });
  expect(Buffer.alloc(16).equals(wrong.session.password ?? Buffer.alloc(0))).toBe(true);
  await Promise.all([wrong.closed, first.closed]);
  const again = await BareClient.attach(fake.port, { sessionId, password });
  expect(again.session.sessionId).toBe(sessionId);
});

test('an unknown session is told that it is gone', async () => {
  const client = await BareClient.attach(fake.port, { sessionId: 77n });
  expect(client.session).toMatchObject({ sessionId: 0n, timeoutMs: 0 });
  await client.closed;
});

test('a client that has seen more than the server is closed without a reply', async () => {
  const client = new BareClient(fake.port);
  client.write(client.greetBytes({ lastZxidSeen: fake.lastZxid + 1n }));
  await client.closed;
  expect(client.frames).toEqual([]);
});

test('sessions take a zxid when they begin and when they end', async () => {
  const before = fake.lastZxid;
  const client = await BareClient.attach(fake.port);
  expect(fake.lastZxid).toBe(before + 1n);
  const { zxid } = await client.ask(requests.closeSession, {});
  expect(zxid).toBe(before + 2n);
  await client.closed;
});

test('a frame above the limit closes the connection without a reply', async () => {
  const client = await BareClient.attach(fake.port);
  client.write(new Uint8Array([0, 0x10, 0, 0]));
  await client.closed;
  expect(client.frames).toEqual([]);
});

test.each([
  ['isro', 'rw'],
  ['ruok', 'imok'],
])('%s is answered with %s and an end', async (word, answer) => {
  const client = new BareClient(fake.port);
  let text = '';
  client.socket.removeAllListeners('data');
  client.socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  client.write(new TextEncoder().encode(word));
  await client.closed;
  expect(text).toBe(answer);
});
