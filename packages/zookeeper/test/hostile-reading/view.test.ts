import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import type { ClientOptions } from '../../src/index.ts';
import { createClient } from '../../src/index.ts';
import { requests } from '../../src/protocol/requests.ts';
import { subscribeInEach } from './channels.ts';
import { TestClock } from './clock.ts';
import { closeAfterEach } from './closing.ts';
import { ScriptedServer } from './scripted-server.ts';

const later = closeAfterEach();
const onChannel = subscribeInEach();
const timeoutMs = 10_000;

/** A client that has seen transaction 500, and the server that showed it. */
async function setup(options: ClientOptions = {}) {
  const world: { zxid: bigint; does: 'serve' | 'shut-out' | 'stutter' | 'nothing' } = {
    zxid: 500n,
    does: 'serve',
  };
  let sessions = 0n;
  const server = later(
    await ScriptedServer.start({
      onConnect: ({ lastZxidSeen }, peer) => {
        if (world.does === 'nothing') return;
        if (world.does === 'stutter') {
          peer.socket.end(Uint8Array.of(0));
          return;
        }
        if (world.does === 'shut-out' || lastZxidSeen > world.zxid) peer.socket.end();
        else peer.accept({ sessionId: ++sessions, timeoutMs });
      },
      onRequest: (request, peer) => {
        const { name, xid } = request;
        if (name === 'exists') peer.reply(xid, world.zxid, -101);
        else if (name === 'sync') {
          peer.replyWith(xid, world.zxid, requests.sync.response, { path: '/' });
        } else peer.answerUsual(request, world.zxid);
      },
    }),
  );
  const clock = new TestClock();
  const client = later(
    createClient(server.connectionString, { clock, sessionTimeoutMs: timeoutMs, ...options }),
    clock,
  );
  await client.connected();
  await client.stat('/');
  expect(client.lastZxid).toBe(500n);
  const seenSince = (from: number) => server.greetings.slice(from).map((one) => one.lastZxidSeen);
  return { world, server, clock, client, seenSince };
}

describe('what was seen', () => {
  it('is kept while a quorum is away for a timeout after the expiry', async () => {
    const { world, server, clock, client, seenSince } = await setup();
    world.does = 'shut-out';
    server.peers[0]!.socket.end();
    await clock.runUntil('it expires', () => client.state === 'expired', 50);
    const before = server.greetings.length;
    await clock.advance(0.8 * timeoutMs, 100);
    expect(seenSince(before).length).toBeGreaterThan(2);
    expect(new Set(seenSince(1))).toEqual(new Set([500n]));
    world.does = 'serve';
    await clock.runUntil('it is connected again', () => client.state === 'connected', 50);
    expect(client.lastZxid).toBe(500n);
  });

  it('is kept while a quorum is away for however long, unless it comes back behind', async () => {
    const { world, server, clock, client, seenSince } = await setup();
    world.does = 'shut-out';
    server.peers[0]!.socket.end();
    await clock.advance(6 * timeoutMs, 250);
    expect(client.state).toBe('expired');
    expect(seenSince(1)).toContain(0n);
    world.does = 'serve';
    const trouble: unknown[] = [];
    onChannel('incumbent:zookeeper:trouble', (message) => trouble.push(message));
    const seen: bigint[] = [];
    client.onState(() => seen.push(client.lastZxid));
    await clock.runUntil('it is connected again', () => client.state === 'connected', 50);
    expect(seen).toEqual([500n]);
    expect(client.lastZxid).toBe(500n);
    expect(trouble).toEqual([]);
    // The count begins again with the next expiry.
    world.does = 'shut-out';
    const before = server.greetings.length;
    server.peers.at(-1)!.socket.end();
    await clock.runUntil('it expires', () => client.state === 'expired', 50);
    await clock.advance(0.8 * timeoutMs, 100);
    expect(new Set(seenSince(before))).toEqual(new Set([500n]));
  });

  it('is asked for before anything else is said', async () => {
    const { world, server, clock, client } = await setup({
      auth: [{ scheme: 'digest', credentials: 'joe:secret' }],
    });
    world.zxid = 3n;
    server.peers[0]!.socket.end();
    await clock.runUntil('it expires', () => client.state === 'expired', 50);
    await clock.runUntil('it is connected again', () => client.state === 'connected', 50);
    const last = server.received.filter(({ connection }) => connection === server.peers.length);
    expect(last.map(({ name }) => name)).toEqual(['sync', 'auth']);
  });

  it.each(['nothing', 'stutter'] as const)(
    'is not given up where every server does something else: %s',
    async (does) => {
      const { world, server, clock, client, seenSince } = await setup();
      world.does = does;
      server.peers[0]!.socket.end();
      await clock.advance(3 * timeoutMs, 250);
      expect(client.state).toBe('expired');
      expect(new Set(seenSince(1))).toEqual(new Set([500n]));
    },
  );

  it('is not given up for one refusal, and a timeout of other failures', async () => {
    const { world, server, clock, client, seenSince } = await setup();
    world.does = 'shut-out';
    server.peers[0]!.socket.end();
    await clock.runUntil('it expires', () => client.state === 'expired', 50);
    await clock.advance(0.3 * timeoutMs, 100);
    world.does = 'nothing';
    const before = server.greetings.length;
    await clock.runUntil('it was asked in vain', () => server.greetings.length >= before + 3);
    await clock.advance(timeoutMs, 100);
    world.does = 'shut-out';
    await clock.advance(0.8 * timeoutMs, 100);
    expect(new Set(seenSince(1))).toEqual(new Set([500n]));
  });

  it('is given up when every server has lost its data: the client comes back', async () => {
    const { world, server, clock, client } = await setup();
    world.zxid = 3n;
    server.peers[0]!.socket.end();
    await clock.runUntil('it expires', () => client.state === 'expired', 50);
    await clock.runUntil('it is connected again', () => client.state === 'connected', 50);
    await client.stat('/');
    expect(client.lastZxid).toBe(3n);
  });

  it.each([
    ['a reply to nothing', 777_777, 'getData'],
    ['a ping that was not sent', -2, 'getData'],
  ])('is not told by %s', async (_, xid, opcode) => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(createClient(fake.connectionString));
    await client.connected();
    const { lastZxid } = client;
    const bytes = new Uint8Array(20);
    const view = new DataView(bytes.buffer);
    view.setInt32(0, 16);
    view.setInt32(4, xid);
    view.setBigInt64(8, 2n ** 61n);
    fake.faults.next(opcode, { type: 'garbage', bytes });
    await expect(client.get('/')).rejects.toMatchObject({ code: 'CONNECTION_LOSS' });
    expect(client.lastZxid).toBe(lastZxid);
    await client.connected();
  });
});
