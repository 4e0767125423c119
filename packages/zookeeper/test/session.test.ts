import { getEventListeners, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import { frame, notificationFrame, replyFrame } from '../../zookeeper-testing/src/fake/replies.ts';
import type { ClientOptions, StateChange } from '../src/index.ts';
import { AuthError, connect, createClient } from '../src/index.ts';
import { connectResponse } from '../src/protocol/connect.ts';
import { requests } from '../src/protocol/requests.ts';
import { subscribeInEach } from './hostile-reading/channels.ts';
import { TestClock, until } from './hostile-reading/clock.ts';
import { closeAfterEach } from './hostile-reading/closing.ts';
import type { Peer, Received, Script } from './hostile-reading/scripted-server.ts';
import { ScriptedServer } from './hostile-reading/scripted-server.ts';

const later = closeAfterEach();
const onChannel = subscribeInEach();
/**
 * The timeout of all sessions here. A ping is due after 3,000 ms, silence after 5,400, expiry after
 * 8,550.
 */
const timeoutMs = 9_000;
const noPassword = new Uint8Array(16);
const password = new Uint8Array(16).fill(7);

/** A clock whose timers are counted. */
class CountingClock extends TestClock {
  timersSet = 0;
  longestMs = 0;

  override setTimer(callback: () => void, delayMs: number) {
    this.timersSet += 1;
    this.longestMs = Math.max(this.longestMs, delayMs);
    return super.setTimer(callback, delayMs);
  }
}

async function setup(script: Script = {}, options: ClientOptions = {}) {
  const server = later(
    await ScriptedServer.start({ onConnect: (_, peer) => peer.accept({ timeoutMs }), ...script }),
  );
  const clock = new CountingClock();
  const losses: (string | undefined)[] = [];
  onChannel('incumbent:zookeeper:disconnected', (message) =>
    losses.push((message as { error?: Error }).error?.message),
  );
  const client = later(
    createClient(server.connectionString, { clock, sessionTimeoutMs: timeoutMs, ...options }),
    clock,
  );
  const changes: StateChange[] = [];
  client.onState((change) => changes.push(change));
  const states = () => changes.map(({ state }) => state);
  const named = (name: string) => server.received.filter((request) => request.name === name);
  /** Lets so much time pass at once, and then all answers have arrived. */
  const pass = async (ms: number) => {
    await clock.advance(ms, ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { server, clock, client, changes, states, losses, named, pass };
}

const answering =
  (zxid = 1n) =>
  (request: Received, peer: Peer) => {
    const { name, xid } = request;
    if (name === 'exists' || name === 'getData') peer.reply(xid, zxid, -101);
    else peer.answerUsual(request, zxid);
  };

describe('a greeting', () => {
  it('asks for a session when there is none, and says that nothing was seen', async () => {
    const { server, client } = await setup({ onConnect: () => {} });
    await until('it is greeted', () => server.greetings.length === 1);
    expect(server.greetings[0]).toEqual({
      ...{ protocolVersion: 0, lastZxidSeen: 0n, timeoutMs, sessionId: 0n },
      ...{ password: Buffer.from(noPassword), readOnly: false },
    });
    expect([client.session, client.exportSession(), client.lastZxid]).toEqual([
      ...[undefined, undefined, 0n],
    ]);
    expect(client.counters).toMatchObject({ attempts: 1, connects: 0 });
  });

  it('is told to subscribers when it is answered, with the time since the attempt began', async () => {
    const published: unknown[] = [];
    onChannel('incumbent:zookeeper:connected', (message) => published.push(message));
    const { server, clock, client } = await setup({ onConnect: () => {} });
    await until('it is greeted', () => server.greetings.length === 1);
    clock.stall(40);
    server.peers[0]!.accept({ timeoutMs });
    await client.connected();
    expect(published).toMatchObject([
      { server: `127.0.0.1:${server.port}`, elapsedMs: 40, sessionId: 1n },
    ]);
  });

  it('attaches to the session that there is, with what was seen', async () => {
    const { server, clock, client, states } = await setup({ onRequest: answering(77n) });
    await client.connected();
    await client.stat('/');
    const session = { id: 1n, timeoutMs, readOnly: false, server: `127.0.0.1:${server.port}` };
    expect(client.session).toEqual(session);
    expect(client.exportSession()).toEqual({ id: 1n, password, timeoutMs, lastZxid: 77n });
    server.peers[0]!.socket.end();
    await clock.runUntil('it comes back', () => states().length >= 3);
    expect(states()).toEqual(['connected', 'suspended', 'connected']);
    expect(server.greetings[1]).toMatchObject({
      ...{ sessionId: 1n, password: Buffer.from(password), lastZxidSeen: 77n },
    });
    expect(client.counters).toMatchObject({ attempts: 2, connects: 2, expirations: 0 });
  });

  it('has the reads that wait right behind it, and no write', async () => {
    const { server, client } = await setup({ onConnect: () => {} });
    const lost = (call: Promise<unknown>) => expect(call).rejects.toMatchObject({ code: 'CLOSED' });
    const calls = [client.stat('/a'), client.get('/b'), client.delete('/c'), client.stat('/d')];
    const ended = Promise.all(calls.map(lost));
    await until('it is greeted', () => server.greetings.length === 1);
    // One write of the client, so all of it has arrived.
    expect(server.names).toEqual(['exists', 'getData']);
    await client.close();
    await ended;
  });

  it('attaches to a session that was given, which expires by its own timeout', async () => {
    const given = { id: 5n, password, timeoutMs: 6_000, lastZxid: 40n };
    const { server, clock, client, states } = await setup(
      { onConnect: () => {} },
      { session: given },
    );
    expect(client.exportSession()).toEqual(given);
    expect(client.lastZxid).toBe(40n);
    await until('it is greeted', () => server.greetings.length === 1);
    expect(server.greetings[0]).toMatchObject({
      ...{ sessionId: 5n, password: Buffer.from(password), lastZxidSeen: 40n },
    });
    clock.stall(5_699);
    expect(client.state).toBe('connecting');
    clock.stall(1);
    expect(client.state).toBe('expired');
    expect(states()).toEqual(['expired']);
  });

  it.each([
    ['of a new session', undefined, 0n],
    ['of one that was given', { id: 1n, password, timeoutMs, lastZxid: 40n }, 40n],
  ])('tells of watches that were asked for before: %s', async (_, session, zxid) => {
    const { server, clock, client, named } = await setup(
      { onConnect: () => {} },
      { session, requestTimeoutMs: 60_000 },
    );
    const watch = client.addWatch('/a');
    const refused = expect(watch).rejects.toMatchObject({ code: 'CLOSED' });
    await until('it is told', () => named('setWatches2').length === 1);
    expect(named('setWatches2')[0]!.body).toMatchObject({
      ...{ relativeZxid: zxid, persistentWatches: ['/a'] },
    });
    server.peers[0]!.accept({ timeoutMs });
    await client.close({ keepSession: true });
    await refused;
    expect(clock.timers).toBe(0);
  });

  it('does not name a session that no quorum knows', async () => {
    const { server, clock, client, states } = await setup(
      { onConnect: (_, peer) => peer.accept({ timeoutMs, readOnly: true }) },
      { readOnly: true },
    );
    await client.connected();
    expect(client.session).toMatchObject({ id: 1n, readOnly: true });
    expect(server.greetings[0]).toMatchObject({ readOnly: true });
    server.peers[0]!.socket.end();
    await clock.runUntil('it comes back', () => states().length >= 3);
    expect(states()).toEqual(['read-only', 'suspended', 'read-only']);
    expect(server.greetings[1]).toMatchObject({
      ...{ sessionId: 0n, password: Buffer.from(noPassword) },
    });
  });
});

describe('the answer to a greeting', () => {
  const respond = (peer: Peer, timeout: number, sessionId: bigint, readOnly = false) =>
    peer.socket.write(
      frame((writer) =>
        connectResponse.write(writer, {
          ...{ protocolVersion: 0, timeoutMs: timeout, sessionId, password, readOnly },
        }),
      ),
    );

  it.each([
    ['no session', 0, 0n],
    ['no timeout', 0, 5n],
    ['no id', timeoutMs, 0n],
  ])('that has %s is no session, and where there was none nothing expires', async (_, ms, id) => {
    const { client, losses, states } = await setup({
      onConnect: (_greeting, peer) => respond(peer, ms, id),
    });
    await until('it is refused', () => losses.length >= 1);
    expect(losses).toEqual(['the server gives no session']);
    expect([client.state, states(), client.counters.expirations]).toEqual(['connecting', [], 0]);
  });

  it.each([
    ['no session', 0, 0n],
    ['no timeout', 0, 1n],
  ])('that has %s ends the one that there was, at once', async (_, ms, id) => {
    const { server, clock, client, states, changes } = await setup({
      onConnect: ({ sessionId }, peer) =>
        sessionId === 0n ? peer.accept({ timeoutMs }) : respond(peer, ms, id),
    });
    await client.connected();
    server.peers[0]!.socket.end();
    await until('it is suspended', () => states().includes('suspended'));
    const atMs = clock.monotonicMs();
    await clock.runUntil('it expires', () => states().includes('expired'), 1);
    expect(clock.monotonicMs() - atMs).toBeLessThan(1_000);
    expect(changes[2]!.error?.message).toMatch(/127\.0\.0\.1:\d+ says that the session has exp/);
    await clock.runUntil('there is another', () => states().length >= 4);
    expect(states()).toEqual(['connected', 'suspended', 'expired', 'connected']);
    expect(server.greetings.at(-1)).toMatchObject({
      ...{ sessionId: 0n, password: Buffer.from(noPassword) },
    });
    expect(client.counters.expirations).toBe(1);
  });

  it('of a server without a quorum says nothing about a session that it does not know', async () => {
    const { server, clock, client, losses, states } = await setup({
      onConnect: ({ sessionId }, peer) =>
        sessionId === 0n ? peer.accept({ timeoutMs }) : respond(peer, 0, 0n, true),
    });
    await client.connected();
    server.peers[0]!.socket.end();
    await clock.runUntil('it is refused', () => losses.length >= 2);
    expect(losses[1]).toBe('the server gives no session');
    expect([client.state, states()]).toEqual(['suspended', ['connected', 'suspended']]);
  });

  it('that has another session than ours is not taken', async () => {
    const { server, clock, client, losses, states } = await setup({
      onConnect: ({ sessionId }, peer) => peer.accept({ timeoutMs, sessionId: sessionId + 1n }),
    });
    await client.connected();
    server.peers[0]!.socket.end();
    await clock.runUntil('it is refused', () => losses.length >= 2);
    expect(losses[1]).toBe('the server attached us to another session');
    expect([client.state, client.session!.id]).toEqual(['suspended', 1n]);
    expect(states()).toEqual(['connected', 'suspended']);
  });

  it.each([
    ['has more than it may', Buffer.alloc(60, 1), /bytes too many after ConnectResponse/],
    ['is an error', replyFrame({ xid: 0, zxid: 0n, error: -119 }), /it is read-only/],
    [
      'is an authentication that was not asked for',
      replyFrame({ xid: -4, zxid: 0n, error: 0 }),
      /unasked|read-only/,
    ],
  ])('that %s ends the connection', async (_, bytes, message) => {
    const { client, losses } = await setup({
      onConnect: (_greeting, peer) =>
        peer.socket.write(
          bytes.length === 60
            ? frame((writer) => {
                const response = { protocolVersion: 0, timeoutMs, sessionId: 1n, password };
                connectResponse.write(writer, { ...response, readOnly: false });
                writer.int32(0);
              })
            : bytes,
        ),
    });
    await until('it is refused', () => losses.length >= 1);
    expect(losses[0]).toMatch(message);
    expect(client.state).toBe('connecting');
  });
});

describe('time', () => {
  it('a ping is sent when nothing was sent for a third of the timeout, and one at a time', async () => {
    let answers = true;
    const { client, named, pass } = await setup({
      onRequest: (request, peer) => answers && answering()(request, peer),
    });
    await client.connected();
    await pass(2_999);
    expect(named('ping')).toHaveLength(0);
    await pass(1);
    await until('it pings', () => named('ping').length === 1);
    await until('it is answered', () => client.counters.bytesReceived > 60);
    await pass(2_000);
    await client.stat('/');
    await pass(2_999);
    expect(client.counters.pings).toBe(1);
    answers = false;
    await pass(1);
    expect(client.counters.pings).toBe(2);
    await pass(3_000);
    await pass(1_000);
    expect(client.counters.pings).toBe(2);
    expect(named('ping')).toHaveLength(2);
  });

  it('a ping is due by the timeout that was granted, from when it is granted', async () => {
    // The first attempt may take 10 s, which is longer than this session lives.
    const { client, states, named, pass } = await setup(
      { onConnect: (_, peer) => peer.accept({ timeoutMs: 3_000 }) },
      { sessionTimeoutMs: 60_000, requestTimeoutMs: 900_000 },
    );
    await client.connected();
    await pass(999);
    expect(client.counters.pings).toBe(0);
    await pass(1);
    expect(client.counters.pings).toBe(1);
    await until('it is sent', () => named('ping').length === 1);
    expect(states()).toEqual(['connected']);
  });

  it('a ping that was not answered keeps no other connection from being asked', async () => {
    const { server, client, states, named, pass } = await setup({ onRequest: () => {} });
    await client.connected();
    await pass(3_000);
    await until('it pings', () => named('ping').length === 1);
    await pass(1_000);
    server.peers[0]!.socket.end();
    await until('it comes back', () => states().length >= 3);
    expect(states()).toEqual(['connected', 'suspended', 'connected']);
    await pass(3_000);
    await until('it pings', () => named('ping').length === 2);
    expect(named('ping').map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it('passes without a timer that has nothing to do', async () => {
    const { clock, client } = await setup({ onRequest: () => {} });
    await client.connected();
    const before = clock.timersSet;
    await clock.advance(5_000, 10);
    // The ping. After that only silence is due.
    expect(clock.timersSet - before).toBeLessThan(5);
    expect(clock.longestMs).toBeLessThanOrEqual(timeoutMs);
  });

  it('a connection on which nothing arrives for 0.6 of the timeout is given up', async () => {
    const { server, client, states, losses, changes, pass } = await setup({ onRequest: () => {} });
    await client.connected();
    await pass(1_000);
    server.peers[0]!.socket.write(notificationFrame(-1, 3, '', -1n));
    await until('it is heard', () => client.counters.notifications === 1);
    await pass(5_399);
    expect(states()).toEqual(['connected']);
    server.script = { onConnect: () => {} };
    await pass(1);
    await until('it is given up', () => states().length >= 2);
    expect(losses).toEqual(['the server said nothing for 5400 ms']);
    expect(changes[1]).toMatchObject({ state: 'suspended', error: { message: losses[0] } });
  });

  it('an answer that waits in the socket is heard before the connection is judged', async () => {
    let stalled = false;
    const { server, clock, client, states } = await setup({
      onRequest: (request, peer) => {
        peer.answerUsual(request);
        if (request.name !== 'ping' || stalled) return;
        stalled = true;
        // The whole process was suspended since. Timers run before the socket is read.
        clock.stall(5_500);
        setTimeout(() => clock.runDueAtOnce(), 1);
        for (const endMs = performance.now() + 5; performance.now() < endMs; );
      },
    });
    await client.connected();
    const { bytesReceived } = client.counters;
    clock.stall(3_000);
    clock.runDueAtOnce();
    await until('it is heard', () => client.counters.bytesReceived > bytesReceived);
    await clock.runDue();
    expect(states()).toEqual(['connected']);
    expect(server.peers).toHaveLength(1);
  });

  it('a session counts from when the last thing that was answered was sent', async () => {
    let answers = true;
    const { server, clock, client, states, named, pass } = await setup({
      onRequest: (request, peer) => answers && answering()(request, peer),
    });
    await client.connected();
    const { bytesReceived } = client.counters;
    await pass(3_000);
    await until('the ping is answered', () => client.counters.bytesReceived > bytesReceived);
    answers = false;
    await pass(3_000);
    await until('another is sent', () => named('ping').length === 2);
    server.script = { onConnect: () => {} };
    server.peers[0]!.socket.end();
    await until('it is cut off', () => client.state === 'suspended');
    clock.stall(5_549);
    expect(client.state).toBe('suspended');
    clock.stall(1);
    expect(client.state).toBe('expired');
    expect(states()).toEqual(['connected', 'suspended', 'expired']);
  });

  it('a session that a server talks to and never confirms expires', async () => {
    const { server, client, states, changes, pass } = await setup({ onRequest: () => {} });
    await client.connected();
    for (const ms of [2_000, 2_000, 2_000, 2_549]) {
      await pass(ms);
      const { notifications } = client.counters;
      server.peers[0]!.socket.write(notificationFrame(-1, 3, '', -1n));
      await until('it is heard', () => client.counters.notifications > notifications);
    }
    expect(states()).toEqual(['connected']);
    // One unanswered ping is enough.
    expect(client.counters.pings).toBe(1);
    server.script = { onConnect: () => {} };
    await pass(1);
    await until('it expires', () => states().includes('expired'));
    expect(states()).toEqual(['connected', 'suspended', 'expired']);
    expect(changes[2]!.error?.message).toBe('no server has confirmed the session for 8550 ms');
    expect(client.session).toBeUndefined();
    expect(client.exportSession()).toBeUndefined();
  });

  it('a call after a stall waits for the next session, and does not hear of the last one', async () => {
    let sessions = 0n;
    const { clock, client } = await setup({
      onConnect: (_, peer) => {
        sessions += 1n;
        peer.accept({ timeoutMs, sessionId: sessions });
      },
    });
    await client.connected();
    clock.stall(2 * timeoutMs);
    let isConnected = false;
    const connected = client.connected().then(() => {
      isConnected = true;
    });
    for (let i = 0; i < 10; i += 1) await Promise.resolve();
    expect(isConnected).toBe(false);
    await clock.runUntilSettled(connected);
    expect(client.session!.id).toBe(2n);
  });

  it.each([
    ['of what was asked for', timeoutMs, 1_500],
    ['at least of a second', 200, 600],
    ['at most of a minute', 600_000, 10_000],
  ])('a first attempt has a part %s: %d ms', async (_, sessionTimeoutMs, boundMs) => {
    const { losses, pass, server } = await setup(
      { onConnect: () => {} },
      { sessionTimeoutMs, requestTimeoutMs: 900_000 },
    );
    await until('it is greeted', () => server.greetings.length === 1);
    await pass(boundMs - 1);
    expect(losses).toEqual([]);
    await pass(1);
    await until('it is given up', () => losses.length >= 1);
    expect(losses).toEqual(['the server said nothing for the time of one attempt']);
  });

  it('what is left of a session is shared by the servers that are still to be asked', async () => {
    const servers = [];
    const greetedMs: number[] = [];
    const clock = new TestClock();
    for (let i = 0; i < 2; i += 1) {
      servers.push(
        later(await ScriptedServer.start({ onConnect: () => greetedMs.push(clock.monotonicMs()) })),
      );
    }
    const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(',');
    const session = { id: 5n, password, timeoutMs: 30_000, lastZxid: 0n };
    later(createClient(`zk://${hosts}`, { clock, session, sessionTimeoutMs: 30_000 }), clock);
    await clock.runUntil('both were asked twice', () => greetedMs.length === 4, 10);
    const [first, second, third, fourth] = greetedMs as [number, number, number, number];
    // A sixth of the timeout, then half of the 18.4 s that are left.
    expect(second - first).toBeCloseTo(5_000, -2);
    expect(fourth - third).toBeGreaterThan(9_000);
    expect(fourth - third).toBeLessThan(9_500);
  });

  it('no timer is set beyond what a clock takes', async () => {
    const requestTimeoutMs = 2 ** 31 - 1;
    const { clock, client } = await setup({ onRequest: () => {} }, { requestTimeoutMs });
    await client.connected();
    const watch = client.watch('/a');
    const ended = expect(watch).rejects.toMatchObject({ code: 'CONNECTION_LOSS' });
    expect(clock.longestMs).toBeLessThanOrEqual(requestTimeoutMs);
    await client.close({ keepSession: true });
    await ended;
  });

  it.each([
    ['for a second', 1_000, 0],
    ['less', 999, 75],
  ])('a server that has served us %s is left at once or after a pause', async (_, ms, pauseMs) => {
    const { server, clock, client, states, pass } = await setup();
    await client.connected();
    await pass(ms);
    const atMs = clock.monotonicMs();
    server.peers[0]!.socket.end();
    await until('it is cut off', () => states().length >= 2);
    await clock.runUntil('it comes back', () => states().length >= 3, 5);
    expect(clock.monotonicMs() - atMs).toBeGreaterThanOrEqual(pauseMs);
    if (pauseMs === 0) expect(clock.monotonicMs() - atMs).toBeLessThan(75);
    expect(client.counters.attempts).toBe(2);
  });

  it.each([
    ['closes on the greeting', (peer: Peer) => peer.socket.end(), false],
    ['resets on the greeting', (peer: Peer) => peer.socket.resetAndDestroy(), false],
    ['says something and closes', (peer: Peer) => peer.socket.end(Uint8Array.of(0)), false],
    ['says what no server says', (peer: Peer) => peer.socket.write(Buffer.alloc(8, 255)), true],
  ])('a server that %s is asked as often as it may be', async (_, answer, often) => {
    const { clock, server } = await setup({ onConnect: (_greeting, peer) => answer(peer) });
    await clock.advance(20_000, 50, 2);
    // Every 0.45 s, or less and less often, up to a quarter of the timeout.
    if (often) expect(server.peers.length).toBeGreaterThan(30);
    else expect(server.peers.length).toBeLessThan(25);
  });
});

describe('a server that closes before TLS has begun', () => {
  it('is asked as often as a missing one: it has dropped no connection', async () => {
    let taken = 0;
    const server = createServer((socket) => {
      taken += 1;
      socket.on('error', () => {});
      socket.destroy();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const clock = new TestClock();
    const client = createClient(`zks://127.0.0.1:${port}`, { clock, sessionTimeoutMs: timeoutMs });
    await clock.advance(20_000, 50, 2);
    await client.close();
    server.close();
    expect(taken).toBeGreaterThan(30);
  });
});

describe('what a server says', () => {
  it('about the latest transaction is taken from replies, and never back', async () => {
    let zxid = 50n;
    const { client } = await setup({ onRequest: (...all) => answering(zxid)(...all) });
    await client.stat('/');
    expect(client.lastZxid).toBe(50n);
    zxid = 40n;
    await client.stat('/');
    expect(client.lastZxid).toBe(50n);
    zxid = 51n;
    await client.stat('/');
    expect(client.lastZxid).toBe(51n);
  });

  it('with a ping counts, too', async () => {
    const { client, pass } = await setup({ onRequest: answering(60n) });
    await client.connected();
    await pass(3_000);
    await until('it is told', () => client.lastZxid === 60n);
  });

  it('of a change is told, counted and published, with the transaction if it says one', async () => {
    const published: unknown[] = [];
    onChannel('incumbent:zookeeper:event', (message) => published.push(message));
    const { server, client } = await setup({ onRequest: answering() });
    const told: unknown[] = [];
    for (const [type, zxid] of [
      [1, 70n],
      [1, -1n],
      [1, 0n],
    ] as const) {
      const { changed } = await client.watch('/a');
      server.peers[0]!.socket.write(notificationFrame(type, 3, '/a', zxid));
      told.push(await changed);
    }
    // An event that is not about a node, and an unknown one.
    server.peers[0]!.socket.write(notificationFrame(-1, 3, '', -1n));
    server.peers[0]!.socket.write(notificationFrame(99, 3, '/a', -1n));
    await until('all are heard', () => client.counters.notifications === 5);
    const event = { type: 'created', path: '/a' };
    expect(told).toEqual([{ ...event, zxid: 70n }, event, event]);
    expect(published).toMatchObject([event, event, event]);
    expect(client.state).toBe('connected');
  });

  it('in answer to a call is published to subscribers', async () => {
    const published: unknown[] = [];
    const { clock, client, server } = await setup({
      onRequest: (request, peer) => request.name !== 'exists' && peer.answerUsual(request),
    });
    await client.connected();
    onChannel('incumbent:zookeeper:reply', (message) => published.push(message));
    clock.stall(1_000);
    const stat = client.stat('/a');
    await until('it is asked', () => server.names.includes('exists'));
    clock.stall(40);
    server.peers[0]!.reply(server.received.at(-1)!.xid, 1n, -101);
    await stat;
    expect(published).toMatchObject([
      { operation: 'exists', path: '/a', error: -101, elapsedMs: 40 },
    ]);
  });

  it.each([
    ['an authentication', -4, 0, /authentication was answered unasked/],
    ['watches', -8, 0, /watches were confirmed unasked/],
    ['a ping', -2, 0, /a ping was answered unasked/],
    ['a call', 7, 0, /request 7 came where one to none was due/],
  ])('in answer to %s that it was not sent ends the connection', async (_, xid, error, message) => {
    const { server, client, losses } = await setup();
    await client.connected();
    server.peers[0]!.reply(xid, 1n, error);
    await until('it is left', () => losses.length >= 1);
    expect(losses[0]).toMatch(message);
  });

  it('behind an event ends the connection: nothing after it could be understood', async () => {
    const { server, client, losses } = await setup();
    await client.connected();
    const bytes = Buffer.concat([notificationFrame(1, 3, '/a', -1n), Buffer.alloc(1)]);
    bytes.writeInt32BE(bytes.length - 4);
    server.peers[0]!.socket.write(bytes);
    await until('it is left', () => losses.length >= 1);
    expect(losses[0]).toMatch(/1 bytes too many after notification/);
  });

  it.each([
    ['has expired', -112, 'SESSION_EXPIRED', ['suspended', 'expired', 'connected']],
    ['is unknown', -12, 'SESSION_EXPIRED', ['suspended', 'expired', 'connected']],
    ['has moved', -118, 'SESSION_MOVED', ['suspended', 'connected']],
  ])('about the session, that it %s (%d), is believed', async (_, code, name, expected) => {
    let told = false;
    let sessions = 0n;
    const { clock, client, states, losses } = await setup({
      onConnect: ({ sessionId }, peer) => {
        if (sessionId === 0n) sessions += 1n;
        peer.accept({ timeoutMs, sessionId: sessions });
      },
      onRequest: (request, peer) => {
        if (request.name !== 'exists') peer.answerUsual(request);
        else peer.reply(request.xid, 1n, told ? -101 : code);
        told ||= request.name === 'exists';
      },
    });
    await client.connected();
    const stat = client.stat('/');
    await expect(stat).rejects.toMatchObject({ code: name, serverCode: code });
    await clock.runUntil('it is connected again', () => states().length > expected.length);
    expect(states()).toEqual(['connected', ...expected]);
    expect(sessions).toBe(expected.includes('expired') ? 2n : 1n);
    expect(losses[0]).toMatch(code === -118 ? /has moved to another server/ : /has expired/);
    await client.stat('/');
  });

  it('that it restores no watches ends the connection', async () => {
    const { server, clock, client, losses, states } = await setup({ onRequest: answering() });
    const { changed } = await client.watch('/a');
    server.script = {
      ...server.script,
      onRequest: (request, peer) => {
        if (request.name === 'setWatches' && request.connection === 2) peer.reply(-8, 1n, -4);
        else answering()(request, peer);
      },
    };
    server.peers[0]!.socket.end();
    await clock.runUntil('it comes back', () => losses.length >= 2);
    expect(losses[1]).toMatch(/refuses to restore watches: error -4/);
    await clock.runUntil('it comes back', () => states().at(-1) === 'connected');
    server.peers.at(-1)!.socket.write(notificationFrame(1, 3, '/a', -1n));
    await expect(changed).resolves.toMatchObject({ type: 'created' });
  });
});

describe('with SASL', () => {
  const sasl = { username: 'joe', password: 'secret' };

  it('a refusal of what was not given yet is no refusal of ours', async () => {
    const { client, losses } = await setup(
      { onConnect: (_, peer) => peer.reply(-4, 0n, -115) },
      { sasl },
    );
    await until('it is left', () => losses.length >= 1);
    expect(losses[0]).toMatch(/answers the handshake with an error/);
    expect(client.state).toBe('connecting');
  });

  it('watches that were not told of yet are not confirmed', async () => {
    const { client, losses, named } = await setup(
      { onRequest: (_, peer) => peer.reply(-8, 1n) },
      { sasl },
    );
    await until('it is left', () => losses.length >= 1);
    expect(losses[0]).toMatch(/watches were confirmed unasked/);
    expect(client.state).toBe('connecting');
    expect(named('sasl').length).toBeGreaterThan(0);
  });

  it('a refusal is the end', async () => {
    const { client, states } = await setup(
      { onRequest: ({ xid }, peer) => peer.reply(xid, 1n, -115) },
      { sasl },
    );
    await until('it is refused', () => states().length >= 1);
    expect(client.state).toBe('auth-failed');
  });

  it('anything else that goes wrong ends the connection, not the client', async () => {
    const { client, losses } = await setup(
      { onRequest: ({ xid }, peer) => peer.reply(xid, 1n, -1) },
      { sasl },
    );
    await until('it is left', () => losses.length >= 1);
    expect(losses[0]).toMatch(/sasl/);
    expect(client.state).toBe('connecting');
  });
});

describe('authentication', () => {
  const auth = [{ scheme: 'digest', credentials: 'joe:secret' }];

  it('answered before the greeting is, as servers on Netty may, does not make the client connected', async () => {
    const { server, client, states, named } = await setup({ onConnect: () => {} }, { auth });
    await until(
      'it is answered',
      () => named('auth').length === 1 && client.counters.bytesReceived > 0,
    );
    expect(states()).toEqual([]);
    server.peers[0]!.accept({ timeoutMs });
    await until('it is connected', () => states().length >= 1);
    expect(client.state).toBe('connected');
  });

  it('is answered before anything else is sent, and once', async () => {
    const { server, client, states, named } = await setup(
      { onRequest: (request, peer) => request.name !== 'auth' && answering()(request, peer) },
      { auth },
    );
    await until('it is asked', () => named('auth').length === 1);
    const stat = client.delete('/a').catch(() => {});
    await until('it was taken', () => client.session !== undefined);
    expect(states()).toEqual([]);
    expect(server.names).toEqual(['auth']);
    server.peers[0]!.reply(-4, 0n);
    await until('it is connected', () => states().length >= 1);
    await until('it is sent', () => named('delete').length === 1);
    await client.close({ keepSession: true });
    await stat;
  });

  it('is over when the server has taken all credentials, not the first of them', async () => {
    const { server, client, states, named } = await setup(
      { onRequest: (request, peer) => request.name !== 'auth' && answering()(request, peer) },
      { auth: [...auth, { scheme: 'digest', credentials: 'ann:secret' }] },
    );
    await until('both are given', () => named('auth').length === 2);
    await until('there is a session', () => client.session !== undefined);
    const { bytesReceived } = client.counters;
    server.peers[0]!.reply(-4, 0n);
    await until('the first is taken', () => client.counters.bytesReceived > bytesReceived);
    expect(states()).toEqual([]);
    server.peers[0]!.reply(-4, 0n);
    await until('it is connected', () => states().length >= 1);
    expect(states()).toEqual(['connected']);
  });

  it.each([
    ['before the greeting', false],
    ['behind the greeting', true],
  ])('that is refused %s is the end', async (_, accepts) => {
    const { clock, client, states, changes } = await setup(
      {
        onConnect: (_greeting, peer) => accepts && peer.accept({ timeoutMs }),
        onRequest: (_request, peer) => peer.reply(-4, 0n, -115),
      },
      { auth },
    );
    const added = client.addAuth('digest', 'ann:secret');
    const refused = expect(added).rejects.toBeInstanceOf(AuthError);
    await until('it is refused', () => states().length >= 1);
    await refused;
    expect(changes[0]).toMatchObject({
      ...{ state: 'auth-failed', error: { code: 'AUTH_FAILED', serverCode: -115 } },
    });
    await expect(client.stat('/a')).rejects.toMatchObject({
      ...{ code: 'AUTH_FAILED', serverCode: -115, path: '/a', operation: 'exists' },
    });
    await expect(client.connected()).rejects.toBeInstanceOf(AuthError);
    expect(clock.timers).toBe(0);
    await client.close();
    expect(states()).toEqual(['auth-failed', 'closed']);
    await expect(client.stat('/a')).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('is not begun on a connection that a subscriber has made useless', async () => {
    let stalls = 0;
    let sessions = 0n;
    const { server, clock, client, states, named } = await setup(
      {
        onConnect: ({ sessionId }, peer) => {
          if (sessionId === 0n) sessions += 1n;
          peer.accept({ timeoutMs, sessionId: sessions });
        },
      },
      { auth },
    );
    onChannel('incumbent:zookeeper:connected', () => {
      stalls += 1;
      if (stalls > 1) return;
      clock.stall(2 * timeoutMs);
      expect(client.state).toBe('expired');
    });
    await clock.runUntil('it is connected', () => states().at(-1) === 'connected');
    expect(named('auth').map(({ connection }) => connection)).toEqual([1, 2]);
    expect(server.greetings).toHaveLength(2);
    expect(client.session!.id).toBe(2n);
  });

  it('asked for later is given at once, changes no state, and leaves nothing behind', async () => {
    const { clock, client, states, named } = await setup({ onRequest: answering() });
    await client.connected();
    const idle = clock.timers;
    const stop = new AbortController();
    const { signal } = stop;
    await client.addAuth('digest', 'joe:secret', { signal, timeoutMs: 5_000 });
    expect(named('auth').map(({ body }) => Buffer.from(body.auth).toString())).toEqual([
      'joe:secret',
    ]);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(clock.timers).toBe(idle);
    expect(states()).toEqual(['connected']);
  });

  it('asked for before there is a connection is given with the greeting', async () => {
    const { server, client, states, named } = await setup({ onRequest: answering() });
    await client.addAuth('digest', 'joe:secret');
    expect(named('auth')).toHaveLength(1);
    expect(states()).toEqual(['connected']);
    expect(server.peers).toHaveLength(1);
  });

  it('that waits ends with the client', async () => {
    const { client } = await setup({ onConnect: () => {} });
    const added = expect(client.addAuth('digest', 'joe:secret')).rejects.toMatchObject({
      ...{ code: 'CLOSED', operation: 'auth' },
    });
    await client.close();
    await added;
  });
});

describe('the end', () => {
  it('of a client that waits between two attempts leaves no timer', async () => {
    const fake = await FakeZooKeeper.start();
    const { connectionString } = fake;
    await fake.close();
    const clock = new TestClock();
    const client = createClient(connectionString, { clock });
    await until('it has tried', () => client.counters.attempts === 1 && clock.timers === 1);
    await client.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(clock.timers).toBe(0);
    expect(client.counters.attempts).toBe(1);
  });

  it('stays the end, also when the session would have expired', async () => {
    const { clock, client, states } = await setup();
    await client.connected();
    await client.close({ keepSession: true });
    clock.stall(2 * timeoutMs);
    expect(client.state).toBe('closed');
    await client.close();
    expect(states()).toEqual(['connected', 'closed']);
    expect(client.counters.expirations).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('leaves nothing to be sent for a watch whose read was lost with its connection', async () => {
    const { server, clock, client, states } = await setup({ onRequest: () => {} });
    await client.connected();
    const lost = expect(client.watch('/a')).rejects.toMatchObject({ code: 'CONNECTION_LOSS' });
    await until('it has come', () => server.received.some(({ name }) => name !== 'auth'));
    server.peers[0]!.socket.end();
    await clock.runUntil('it is suspended', () => states().includes('suspended'));
    await lost;
    expect(client.counters.queued).toBe(0);
  });

  it('is closed for all callers, even from a listener that is told of it', async () => {
    const { client } = await setup();
    await client.connected();
    const again: Promise<void>[] = [];
    client.onState(({ state }) => {
      if (state === 'closed') again.push(client.close());
    });
    await client.close();
    await Promise.all(again);
    expect(again).toHaveLength(1);
  });

  it('takes no more calls from when it begins, and waits for those that were made', async () => {
    const { server, clock, client, named } = await setup({ onRequest: () => {} });
    await client.connected();
    const before = client.stat('/a');
    let closed = false;
    const closing = client.close().then(() => {
      closed = true;
    });
    await expect(client.stat('/b')).rejects.toMatchObject({ code: 'CLOSED', path: '/b' });
    await until('it is told', () => named('closeSession').length === 1);
    const [exists, close] = server.received;
    server.peers[0]!.reply(exists!.xid, 1n, -101);
    await expect(before).resolves.toMatchObject({ stat: null });
    expect(closed).toBe(false);
    server.peers[0]!.reply(close!.xid, 2n);
    await closing;
    expect(clock.timers).toBe(0);
    expect(server.names).toEqual(['exists', 'closeSession']);
  });

  it('comes within its bound, whatever the server does', async () => {
    const { clock, client } = await setup({ onRequest: () => {} }, { closeTimeoutMs: 700 });
    await client.connected();
    const stat = expect(client.stat('/a')).rejects.toMatchObject({ code: 'CONNECTION_LOSS' });
    let closed = false;
    void client.close().then(() => {
      closed = true;
    });
    await clock.advance(699, 699);
    expect(closed).toBe(false);
    await clock.advance(1);
    await until('it is closed', () => closed);
    await stat;
    expect(client.state).toBe('closed');
  });

  it('takes no watch from a server that is about to forget them all', async () => {
    const { client, clock, named } = await setup({
      onRequest: (request, peer) => request.name !== 'closeSession' && answering()(request, peer),
    });
    const watch = await client.watch('/a');
    const closing = client.close();
    await until('it is told', () => named('closeSession').length === 1);
    const { requests: taken } = client.counters;
    watch.cancel();
    expect(client.counters.requests).toBe(taken);
    await clock.runUntilSettled(closing);
    expect(named('removeWatches')).toEqual([]);
  });

  it('of a suspended session is told to the server that can be reached in time', async () => {
    const { server, clock, client, states, named } = await setup();
    await client.connected();
    server.peers[0]!.socket.end();
    await until('it is cut off', () => states().includes('suspended'));
    await clock.runUntilSettled(client.close());
    expect(named('closeSession')).toMatchObject([{ connection: 2 }]);
    expect(states().at(-1)).toBe('closed');
  });

  it('is told again where the connection was lost before it was answered', async () => {
    const { server, clock, client, named } = await setup({
      onRequest: (request, peer) => {
        if (request.name === 'closeSession' && peer.number === 1) peer.socket.end();
        else peer.answerUsual(request);
      },
    });
    await client.connected();
    await clock.runUntilSettled(client.close());
    expect(named('closeSession').map(({ connection }) => connection)).toEqual([1, 2]);
    expect(server.peers).toHaveLength(2);
  });

  it('is not told where the session is to be kept, or where there is none', async () => {
    const { server, client, named } = await setup();
    await client.connected();
    await client.close({ keepSession: true });
    await until('the connection ends', () => server.peers[0]!.ended !== undefined);
    expect(named('closeSession')).toEqual([]);
    const { client: never, clock } = await setup({ onConnect: () => {} });
    await never.close();
    expect(clock.timers).toBe(0);
  });

  it('of a removal of watches is the answer alone: it has no bound', async () => {
    const { clock, client, named } = await setup(
      {
        onRequest: (request, peer) =>
          request.name !== 'removeWatches' && answering()(request, peer),
      },
      { requestTimeoutMs: 500 },
    );
    const watch = await client.watch('/a');
    watch.cancel();
    await until('it is asked', () => named('removeWatches').length === 1);
    await clock.advance(2_000, 100);
    expect(client.counters).toMatchObject({ outstanding: 1, failed: 0 });
  });
});

describe('a server without a quorum', () => {
  it('is left as soon as one with a quorum is found', async () => {
    let readOnly = true;
    const { clock, client, states, losses } = await setup(
      {
        onConnect: (_, peer) => peer.accept({ timeoutMs, readOnly }),
        isro: () => (readOnly ? 'ro' : 'rw'),
      },
      { readOnly: true },
    );
    await client.connected();
    await clock.advance(1_000, 50);
    expect(states()).toEqual(['read-only']);
    readOnly = false;
    await clock.runUntil('it is connected', () => client.state === 'connected', 50);
    expect(losses).toEqual(['a server with a quorum was found']);
    expect(states()).toEqual(['read-only', 'suspended', 'connected']);
    expect(client.session).toMatchObject({ readOnly: false });
    const { attempts } = client.counters;
    await clock.advance(2_000, 50);
    expect(client.counters.attempts).toBe(attempts);
  });
});

describe('a name that is not resolved', () => {
  it('is told as the reason why there is no session, and published', async () => {
    const published: unknown[] = [];
    onChannel('incumbent:zookeeper:trouble', (message) => published.push(message));
    const clock = new TestClock();
    const connecting = connect('zk://no-such-host.invalid:2181', {
      clock,
      sessionTimeoutMs: 1_000,
    });
    const error = await clock.runUntilSettled(connecting.catch((reason: Error) => reason));
    expect(error).toMatchObject({ code: 'CONNECT_TIMEOUT' });
    expect((error as Error).message).toMatch(/the last attempt: .*no-such-host\.invalid/);
    expect(published[0]).toMatchObject({ what: 'resolving a host' });
  });
});

describe('a new session', () => {
  it('is told as a gap of an expiry, and a reconnect as one of a reconnect', async () => {
    let sessions = 0n;
    const { server, clock, client, states } = await setup({
      onConnect: ({ sessionId }, peer) => {
        if (sessionId === 0n) sessions += 1n;
        peer.accept({ timeoutMs, sessionId: sessions });
      },
      onRequest: (request, peer) => {
        if (request.name !== 'addWatch') return answering()(request, peer);
        return peer.replyWith(request.xid, 1n, requests.addWatch.response, { error: 0 } as never);
      },
    });
    const watch = await client.addWatch('/a');
    const events: unknown[] = [];
    void (async () => {
      for await (const event of watch) events.push(event);
    })();
    await client.addAuth('digest', 'joe:secret');
    server.peers[0]!.socket.end();
    await clock.runUntil('it is back', () => states().length >= 3);
    clock.stall(2 * timeoutMs);
    await clock.runUntil('it is back', () => states().at(-1) === 'connected' && sessions === 2n);
    await until('both are told', () => events.length >= 2);
    expect(events).toMatchObject([
      { type: 'gap', reason: 'reconnected' },
      { type: 'gap', reason: 'expired' },
    ]);
  });
});
