import { syncBuiltinESMExports } from 'node:module';
import tls from 'node:tls';
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { State, WatchEvent } from '../../src/index.ts';
import { connect, createClient, ZooKeeperError } from '../../src/index.ts';
import { checkTls } from '../../src/net/secure-context.ts';
import { findReadWriteServer } from '../../src/session/read-write-search.ts';
import { sessionTiming } from '../../src/session/timing.ts';
import { subscribeInEach } from './channels.ts';
import { TestClock, until } from './clock.ts';
import { closeAfterEach } from './closing.ts';
import { connectedClient, timeoutMs } from './connected.ts';
import { ScriptedServer } from './scripted-server.ts';

const later = closeAfterEach();
const onChannel = subscribeInEach();
const setup = () => connectedClient(later);
const undo: (() => void)[] = [];
afterEach(() => {
  for (const one of undo.splice(0)) one();
});

describe('a protected create that the search has not found', () => {
  it('is no longer in doubt: the answer to the next request is what is told', async () => {
    const { fake, clock, client } = await setup();
    fake.faults.next('create2', 'dropBefore');
    fake.faults.next('create2', { type: 'errorCode', code: -102 });
    const create = client.create('/a', 'x', { protected: true });
    await expect(clock.runUntilSettled(create)).rejects.toMatchObject({ code: 'NO_AUTH' });
  });
});

describe('an addWatch that is given up', () => {
  it.each([
    ['by its bound, on its way', 1_000],
    ['by its bound, before it was sent', 1],
  ])('%s takes no watch of a read before it away untold', async (_, maxInFlight) => {
    const fake = later(await FakeZooKeeper.start());
    const clock = new TestClock();
    const client = later(await connect(fake.connectionString, { clock, maxInFlight }), clock);
    await client.create('/a');
    const delayed = fake.faults.next('getData', 'delay');
    const watching = client.watch('/a');
    const adding = client.addWatch('/a', { timeoutMs: 100 });
    await delayed.struck;
    await expect(clock.runUntilSettled(adding)).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT' });
    delayed.release();
    let told: WatchEvent | undefined;
    void (await watching).changed.then((event) => {
      told = event;
    });
    await until('it is told', () => told !== undefined);
    expect(told).toMatchObject({ type: 'lost', reason: 'removed' });
    expect(client.counters.watches).toBe(0);
  });

  it('and asked for again does so too: what came in between is unknown', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(await connect(fake.connectionString));
    await client.create('/a');
    const delayed = fake.faults.next('getChildren2', 'delay');
    const abort = new AbortController();
    const watching = client.watchChildren('/a');
    const adding = client.addWatch('/a', { signal: abort.signal });
    await delayed.struck;
    abort.abort(new Error('enough'));
    await expect(adding).rejects.toThrow('enough');
    const again = client.addWatch('/a');
    delayed.release();
    let told: WatchEvent | undefined;
    void (await watching).changed.then((event) => {
      told = event;
    });
    later(await again);
    await until('it is told', () => told !== undefined);
    expect(told).toMatchObject({ type: 'lost', reason: 'removed' });
  });

  it('leaves a watch alone whose read comes after its removal', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(await connect(fake.connectionString));
    await client.create('/a');
    const delayed = fake.faults.next('addWatch', 'delay');
    const abort = new AbortController();
    const adding = client.addWatch('/a', { signal: abort.signal });
    await delayed.struck;
    abort.abort(new Error('enough'));
    await expect(adding).rejects.toThrow('enough');
    const watching = client.watch('/a');
    delayed.release();
    const { changed } = await watching;
    await client.set('/a', 'x');
    await expect(changed).resolves.toMatchObject({ type: 'changed', path: '/a' });
  });
});

describe('watch()', () => {
  it('has a bound also when none was given', async () => {
    const fake = later(await FakeZooKeeper.start());
    const clock = new TestClock();
    const client = later(
      await connect(fake.connectionString, { clock, requestTimeoutMs: 200 }),
      clock,
    );
    await client.create('/a');
    // The node exists for every `exists`, and has gone for every read.
    fake.faults.next({ opcode: 'getData', times: 100_000 }, { type: 'errorCode', code: -101 });
    const watch = clock.runUntilSettled(client.watch('/a'));
    await expect(watch).rejects.toMatchObject({ code: 'REQUEST_TIMEOUT', maybeApplied: false });
  });
});

describe('ensurePath', () => {
  it.each([
    ['is read-only', -119],
    ['has a quota that is used up', -125],
  ])('is content with a node that is there when the server %s', async (_, code) => {
    const { fake, client } = await setup();
    await client.create('/app');
    fake.faults.next({ opcode: ['create', 'create2'], times: 2 }, { type: 'errorCode', code });
    await client.ensurePath('/app');
    await expect(client.ensurePath('/other')).rejects.toBeInstanceOf(ZooKeeperError);
  });
});

describe('a subscriber that closes the client', () => {
  it('when a server takes us leaves neither a session nor a connection', async () => {
    const fake = later(await FakeZooKeeper.start({ tickTimeMs: 500 }));
    const clock = new TestClock();
    const client = later(createClient(fake.connectionString, { clock }), clock);
    const states: State[] = [];
    client.onState(({ state }) => states.push(state));
    let closed: Promise<void> | undefined;
    onChannel('incumbent:zookeeper:connected', () => {
      closed = client.close();
    });
    await until('a server takes us', () => closed !== undefined);
    await clock.runUntilSettled(closed!);
    await until('the session is closed', () => fake.sessions.length === 0);
    expect(client.state).toBe('closed');
    expect(states.at(-1)).toBe('closed');
    expect(clock.timers).toBe(0);
  });

  it('and keeps the session sends nothing more', async () => {
    const server = later(await ScriptedServer.start());
    const clock = new TestClock();
    const client = later(createClient(server.connectionString, { clock }), clock);
    const get = client.get('/');
    const refused = expect(get).rejects.toMatchObject({ code: 'CLOSED' });
    let closed: Promise<void> | undefined;
    onChannel('incumbent:zookeeper:connected', () => {
      closed = client.close({ keepSession: true });
    });
    const states: State[] = [];
    client.onState(({ state }) => states.push(state));
    await until('a server takes us', () => closed !== undefined);
    await closed;
    await refused;
    await until('the connection ends', () => server.peers[0]!.ended !== undefined);
    expect(states).toEqual(['closed']);
    expect(clock.timers).toBe(0);
  });
});

describe('after an expiry', () => {
  it('bounds go on to come from what was granted, not from what was asked for', async () => {
    let silent = false;
    const server = later(
      await ScriptedServer.start({
        onConnect: (_, peer) => {
          if (!silent) peer.accept({ timeoutMs: 4_000 });
        },
      }),
    );
    const clock = new TestClock();
    const client = later(
      createClient(server.connectionString, { clock, sessionTimeoutMs: 60_000 }),
      clock,
    );
    await client.connected();
    silent = true;
    clock.stall(2 * 4_000);
    expect(client.state).toBe('expired');
    await until('it asks again', () => server.greetings.length === 2);
    const startMs = clock.monotonicMs();
    await clock.runUntil('it gives that up', () => server.greetings.length > 2, 100);
    expect(clock.monotonicMs() - startMs).toBeLessThan(4_000);
  });
});

describe('a TLS socket that cannot be made', () => {
  function breakTls(): void {
    const spied = vi.spyOn(tls, 'connect').mockImplementation(() => {
      throw new TypeError('no such name');
    });
    syncBuiltinESMExports();
    undo.push(() => {
      spied.mockRestore();
      syncBuiltinESMExports();
    });
  }

  it('leaves no TCP connection behind', async () => {
    breakTls();
    const server = later(await ScriptedServer.start());
    const clock = new TestClock();
    const client = later(createClient(`zks://127.0.0.1:${server.port}`, { clock }), clock);
    await clock.runUntil('it tries again', () => client.counters.attempts > 2);
    await client.close();
    await until('every connection ends', () =>
      server.peers.every(({ ended }) => ended !== undefined),
    );
    expect(client.counters.bytesSent).toBe(0);
  });

  it('ends no search for a server with a quorum', async () => {
    breakTls();
    const clock = new TestClock();
    const stop = new AbortController();
    const found = findReadWriteServer(
      {
        ...{ hosts: [{ host: '127.0.0.1', port: 1 }], tls: checkTls({}), clock },
        random: () => 0,
      },
      sessionTiming(timeoutMs),
      stop.signal,
    );
    const asked = vi.mocked(tls.connect);
    await clock.runUntil('it asks again', () => asked.mock.calls.length > 1);
    stop.abort();
    await expect(clock.runUntilSettled(found)).resolves.toBe(false);
    expect(clock.timers).toBe(0);
  });
});
