import { afterEach, beforeEach, expect, test } from 'vitest';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';
import { FakeZooKeeper } from '../../src/index.ts';
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

test('the byte for read-only is answered only to clients that send it', async () => {
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

const version = '3.8.0-fake, built on 2000-01-01 00:00 UTC';

test.each([
  ['isro', 'rw'],
  ['ruok', 'imok'],
  [
    'srvr',
    `Zookeeper version: ${version}\nLatency min/avg/max: 0/0.0/0\nReceived: 0\nSent: 0\n` +
      'Connections: 1\nOutstanding: 0\nZxid: 0x100000000\nMode: standalone\nNode count: 4\n',
  ],
  ['envi', `Environment:\nzookeeper.version=${version}\nhost.name=localhost\n`],
  ['wchs', '0 connections watching 0 paths\nTotal watches:0\n'],
  ['wchp', '\n'],
  ['mntr', 'mntr is not executed because it is not in the whitelist.\n'],
])('%s is answered, and the connection ends', async (word, answer) => {
  expect(await ask(word)).toBe(answer);
});

test('wchs, wchp and wchc tell of watches of data, as a real server does', async () => {
  const [one, other] = [await BareClient.attach(fake.port), await BareClient.attach(fake.port)];
  await one.exists('/y', true);
  for (const client of [one, other]) await client.get('/', true);
  await other.children('/', true);
  const [first, second] = [one, other].map(({ session }) => `0x${session.sessionId.toString(16)}`);
  expect(await ask('wchs')).toBe('2 connections watching 2 paths\nTotal watches:3\n');
  expect(await ask('wchp')).toBe(`/y\n\t${first}\n/\n\t${first}\n\t${second}\n\n`);
  expect(await ask('wchc')).toBe(`${first}\n\t/y\n\t/\n${second}\n\t/\n\n`);
});

test('SASL is answered without a token, as by a server that has no login configured', async () => {
  const client = await BareClient.attach(fake.port);
  const token = new Uint8Array(0);
  expect(await client.ask(requests.sasl, { token })).toMatchObject({
    error: 0,
    body: { token: null },
  });
  client.send(requests.sasl, { token: null });
  await client.closed;
  expect(client.frames).toEqual([]);
});

async function ask(word: string): Promise<string> {
  const client = new BareClient(fake.port);
  let text = '';
  client.socket.removeAllListeners('data');
  client.socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  client.write(new TextEncoder().encode(word));
  await client.closed;
  return text;
}
