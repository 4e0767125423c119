import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import type { StateChange, WatchEvent } from '../../src/index.ts';
import { AuthError, connect, createClient } from '../../src/index.ts';
import { subscribeInEach } from './channels.ts';
import { TestClock, until } from './clock.ts';
import { closeAfterEach } from './closing.ts';
import { connectedClient, timeoutMs } from './connected.ts';
import { ScriptedServer } from './scripted-server.ts';

const later = closeAfterEach();
const onChannel = subscribeInEach();
const setup = () => connectedClient(later);

describe('a protected create whose reply was lost', () => {
  it('says that it may have been applied, also when no server can be asked', async () => {
    const { fake, clock, client } = await setup();
    fake.faults.next('create2', 'dropAfter');
    await fake.refuse();
    const create = client.create('/a', 'x', { protected: true, timeoutMs: 500 });
    await expect(clock.runUntilSettled(create)).rejects.toMatchObject({
      ...{ code: 'REQUEST_TIMEOUT', maybeApplied: true, operation: 'create2' },
    });
    expect([...fake.tree().keys()].some((path) => path.endsWith('-a'))).toBe(true);
  });

  it.each([
    ['sync', -127],
    ['getChildren', -102],
  ])('and when the search for it is refused: %s, %d', async (opcode, code) => {
    const { fake, clock, client } = await setup();
    fake.faults.next('create2', 'dropAfter');
    fake.faults.next(opcode, { type: 'errorCode', code });
    const create = client.create('/a', 'x', { protected: true });
    await expect(clock.runUntilSettled(create)).rejects.toMatchObject({
      ...{ code: 'CONNECTION_LOSS', maybeApplied: true, operation: 'create2' },
    });
  });
});

describe('watches', () => {
  it('set before an addWatch that is given up are told that they are gone with it', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(await connect(fake.connectionString));
    await client.create('/a');
    const delayed = fake.faults.next('getData', 'delay');
    const abort = new AbortController();
    const watching = client.watch('/a');
    const adding = client.addWatch('/a', { signal: abort.signal });
    await delayed.struck;
    abort.abort(new Error('enough'));
    await expect(adding).rejects.toThrow('enough');
    delayed.release();
    const { changed } = await watching;
    let told: WatchEvent | undefined;
    void changed.then((event) => {
      told = event;
    });
    await client.sync();
    expect(fake.watches(client.session!.id)).toEqual([]);
    await until('it is told', () => told !== undefined);
    expect(told).toMatchObject({ type: 'lost', reason: 'removed' });
  });

  it('are set within the bound of the call, also on a node that comes and goes', async () => {
    const { fake, clock, client } = await setup();
    await client.create('/a');
    // The node exists for every `exists`, and has gone for every read.
    fake.faults.next({ opcode: 'getData', times: 100_000 }, { type: 'errorCode', code: -101 });
    const watch = client.watch('/a', { timeoutMs: 200 });
    await expect(clock.runUntilSettled(watch)).rejects.toMatchObject({
      ...{ code: 'REQUEST_TIMEOUT', maybeApplied: false },
    });
  });
});

describe('after a stall', () => {
  it('connected() and states() say what was told last: no unexpected event follows', async () => {
    const server = later(
      await ScriptedServer.start({
        onConnect: (_, peer) => peer.accept({ timeoutMs }),
        onRequest: () => {},
      }),
    );
    const clock = new TestClock();
    const client = later(createClient(server.connectionString, { clock }), clock);
    await client.connected();
    clock.stall(timeoutMs / 3 + 1);
    clock.runDueAtOnce();
    await until('a ping is sent', () => server.received.some(({ name }) => name === 'ping'));
    clock.stall(0.73 * timeoutMs);
    expect(client.state).toBe('suspended');
    const states = client.states();
    expect((await states.next()).value).toMatchObject({ state: 'connected' });
    await states.return();
    await clock.runUntilSettled(client.connected({ timeoutMs: 1 }));
  });
});

describe('ensurePath', () => {
  it('is content with a node that is there, where it may make none', async () => {
    const { fake, client } = await setup();
    await client.create('/app');
    const create = { opcode: ['create', 'create2'], times: 2 };
    fake.faults.next(create, { type: 'errorCode', code: -102 });
    await client.ensurePath('/app');
    await expect(client.ensurePath('/other')).rejects.toBeInstanceOf(AuthError);
  });
});

describe('a subscriber', () => {
  it('that closes the client when an attempt begins leaves no connection', async () => {
    const server = later(await ScriptedServer.start({ onConnect: (_, peer) => peer.socket.end() }));
    const clock = new TestClock();
    const client = later(createClient(server.connectionString, { clock }), clock);
    let closed: Promise<void> | undefined;
    onChannel('incumbent:zookeeper:attempt', () => {
      closed = client.close();
    });
    await clock.runUntil('it tries again', () => closed !== undefined);
    await closed;
    await clock.advance(200);
    expect(server.peers).toHaveLength(1);
    expect(clock.timers).toBe(0);
  });

  it('that lets the session expire when a server takes us leaves no state without one', async () => {
    const fake = later(await FakeZooKeeper.start({ tickTimeMs: 500 }));
    const clock = new TestClock();
    const client = later(
      createClient(fake.connectionString, { clock, sessionTimeoutMs: timeoutMs }),
      clock,
    );
    const changes: StateChange[] = [];
    client.onState((change) => changes.push(change));
    let stalled = false;
    onChannel('incumbent:zookeeper:connected', () => {
      if (stalled) return;
      stalled = true;
      clock.stall(2 * timeoutMs);
      expect(client.state).toBe('expired');
    });
    await clock.runUntil('it is connected', () => client.state === 'connected');
    expect(changes.map(({ state }) => state)).toEqual(['expired', 'connected']);
    expect(changes[1]!.session).toBeDefined();
  });
});

describe('before a server has granted a timeout', () => {
  it('an attempt is not as long as what is asked for', async () => {
    const server = later(await ScriptedServer.start({ onConnect: () => {} }));
    const clock = new TestClock();
    const startMs = clock.monotonicMs();
    const client = later(
      createClient(server.connectionString, { clock, sessionTimeoutMs: 3_600_000 }),
      clock,
    );
    await clock.runUntil('it tries again', () => server.peers.length > 1, 250);
    expect(clock.monotonicMs() - startMs).toBeLessThan(40_000);
    expect(client.state).toBe('connecting');
  });

  it('nor as short: a server that takes 0.4 s to answer is waited for', async () => {
    const server = later(await ScriptedServer.start({ onConnect: () => {} }));
    const clock = new TestClock();
    const client = later(
      createClient(server.connectionString, { clock, sessionTimeoutMs: 1 }),
      clock,
    );
    await until('it is asked', () => server.greetings.length === 1);
    await clock.advance(400);
    server.peers[0]!.accept();
    await until('it is connected', () => client.state === 'connected');
    expect(server.peers).toHaveLength(1);
  });
});

describe('close()', () => {
  it('ends the session also when the queue is full', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(
      await connect(fake.connectionString, { maxInFlight: 1, maxQueuedRequests: 0 }),
    );
    const delayed = fake.faults.next('getData', 'delay');
    const get = client.get('/');
    await delayed.struck;
    const closed = client.close();
    delayed.release();
    await Promise.all([get, closed]);
    expect(fake.sessions).toEqual([]);
  });
});
