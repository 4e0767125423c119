import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import type { State } from '../../src/index.ts';
import { createClient } from '../../src/index.ts';
import { TestClock, until } from './clock.ts';
import { closeAfterEach } from './closing.ts';
import { connectedClient } from './connected.ts';
import { ScriptedServer } from './scripted-server.ts';

const later = closeAfterEach();
const timeoutMs = 9_000;
/** A little more than the client gives a session that no server confirms. */
const tooLongMs = 0.96 * timeoutMs;

describe('an expiry', () => {
  it('resets the connection: what was not sent yet never arrives', async () => {
    const server = later(
      await ScriptedServer.start({
        onConnect: (_, peer) => {
          peer.accept({ timeoutMs });
          peer.socket.pause();
        },
      }),
    );
    const clock = new TestClock();
    const client = later(createClient(server.connectionString, { clock }), clock);
    await client.connected();
    // More than the peer takes while it does not read, and less than the kernel takes from us.
    const data = new Uint8Array(900_000);
    const outcomes = Promise.allSettled([client.set('/a', data)]);
    await until('it was handed over', () => client.counters.bytesSent > data.length);
    clock.stall(tooLongMs);
    expect(client.state).toBe('expired');
    await outcomes;
    const [peer] = server.peers;
    peer!.socket.resume();
    // The system decides which end is reported, FIN or ECONNRESET, if there was data to read.
    await until('the connection ends', () => peer!.ended !== undefined);
    expect(peer!.bytesReceived).toBeLessThan(data.length);
  });

  it('found by the search for a server lets a listener close the client for good', async () => {
    const fake = later(await FakeZooKeeper.start({ tickTimeMs: 500 }));
    await fake.addServer();
    const clock = new TestClock();
    const client = later(
      createClient(fake.connectionString, { clock, sessionTimeoutMs: timeoutMs }),
      clock,
    );
    await client.connected();
    const states: State[] = [];
    client.onState(({ state }) => {
      states.push(state);
      // No timer runs before the other server is tried.
      if (state === 'suspended') clock.stall(tooLongMs);
      if (state === 'expired') void client.close();
    });
    const { attempts } = client.counters;
    fake.dropConnections();
    await until('it is closed', () => states.includes('closed'));
    await clock.runDue();
    expect(states).toEqual(['suspended', 'expired', 'closed']);
    expect(client.counters.attempts).toBe(attempts);
    expect(clock.timers).toBe(0);
  });

  it('is judged on thaw by the answer that waits in the socket', async () => {
    const clock = new TestClock();
    let thawed = false;
    const server = later(
      await ScriptedServer.start({
        onConnect: (_, peer) => peer.accept({ timeoutMs }),
        onRequest: (request, peer) => {
          peer.answerUsual(request);
          if (request.name !== 'ping' || thawed) return;
          thawed = true;
          // The whole process was suspended since. Timers run before the socket is read.
          clock.stall(0.73 * timeoutMs);
          setTimeout(() => clock.runDueAtOnce(), 1);
          for (const endMs = performance.now() + 5; performance.now() < endMs; );
        },
      }),
    );
    const client = later(createClient(server.connectionString, { clock }), clock);
    await client.connected();
    const states: State[] = [];
    client.onState(({ state }) => states.push(state));
    const { bytesReceived } = client.counters;
    clock.stall(timeoutMs / 3 + 1);
    clock.runDueAtOnce();
    await until('the answer is read', () => client.counters.bytesReceived > bytesReceived);
    await clock.runDue();
    expect(states).toEqual([]);
    expect(client.state).toBe('connected');
  });

  it('inside a listener of `connected` leaves no call behind on a connection that is gone', async () => {
    const fake = later(await FakeZooKeeper.start({ tickTimeMs: 500 }));
    const clock = new TestClock();
    const client = later(
      createClient(fake.connectionString, { clock, sessionTimeoutMs: timeoutMs }),
      clock,
    );
    const states: State[] = [];
    let call: Promise<unknown> | undefined;
    client.onState(({ state }) => {
      states.push(state);
      if (state === 'connected' && states.length === 1) {
        clock.stall(2 * timeoutMs);
        expect(client.state).toBe('expired');
      }
      if (state === 'expired') call = client.stat('/');
    });
    await until('it is told of the expiry', () => call !== undefined);
    await expect(clock.runUntilSettled(call!)).resolves.toMatchObject({ stat: { version: 0 } });
    expect(states).toEqual(['connected', 'suspended', 'expired', 'connected']);
  });

  it('is told by a reply that says so, not only by a handshake', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(createClient(fake.connectionString));
    await client.connected();
    const { id } = client.session!;
    fake.faults.next('getData', { type: 'errorCode', code: -112 });
    const states: State[] = [];
    client.onState(({ state }) => states.push(state));
    await expect(client.get('/')).rejects.toMatchObject({ code: 'SESSION_EXPIRED' });
    expect(states).toContain('expired');
    await client.connected();
    expect(client.session!.id).not.toBe(id);
  });
});

describe('listeners of the state', () => {
  it('all hear the changes in order, also when one of them causes the next', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(createClient(fake.connectionString));
    const heard: State[] = [];
    client.onState(({ state }) => {
      if (state === 'connected') void client.close({ keepSession: true });
    });
    client.onState(({ state }) => heard.push(state));
    await until('it is closed', () => heard.includes('closed'));
    expect(heard).toEqual(['connected', 'closed']);
  });

  it('begin with the expiry, where the first is asked for before a timer has noticed it', async () => {
    const { clock, client } = await connectedClient(later);
    clock.stall(tooLongMs);
    const states = client.states();
    const { value } = await states.next();
    expect(value).toMatchObject({ state: 'expired', previous: 'expired', session: undefined });
    await states.return();
  });

  it('begin with the state at the time when the first is asked for', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(createClient(fake.connectionString));
    const states = client.states();
    await client.connected();
    const { value } = await states.next();
    expect(value).toMatchObject({ state: 'connected', previous: 'connected' });
    await states.return();
  });
});
