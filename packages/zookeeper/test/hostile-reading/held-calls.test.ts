/**
 * A listener of `connected` blocks for longer than the session lives, asks for the state, and makes
 * calls. The end of the session waits for the listener, so these calls belong to the next session.
 */

import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { expect, test } from 'vitest';
import type { StateChange, ZooKeeper } from '../../src/index.ts';
import { createClient } from '../../src/index.ts';
import { TestClock } from './clock.ts';
import { closeAfterEach } from './closing.ts';

const later = closeAfterEach();
const timeoutMs = 9_000;

/**
 * @returns a client whose first session has ended while `listener` ran, once it is connected again
 */
async function afterStall(listener: (client: ZooKeeper) => void): Promise<[ZooKeeper, TestClock]> {
  const server = later(await FakeZooKeeper.start());
  const clock = new TestClock();
  const options = { clock, sessionTimeoutMs: timeoutMs };
  const client = later(createClient(server.connectionString, options), clock);
  let connections = 0;
  client.onState(({ state }) => {
    if (state !== 'connected') return;
    connections += 1;
    if (connections > 1) return;
    clock.stall(2 * timeoutMs);
    expect(client.state).toBe('expired');
    listener(client);
  });
  await clock.runUntil('it is connected again', () => connections > 1);
  return [client, clock];
}

test('data that change after the call are written as they were', async () => {
  let made: Promise<unknown> | undefined;
  const [client, clock] = await afterStall((its) => {
    const data = Buffer.from('before');
    made = its.create('/node', data);
    data.fill('X');
  });
  await clock.runUntilSettled(made as Promise<unknown>);
  expect((await client.get('/node')).text).toBe('before');
});

test('a call that is aborted in the same turn does not count as waiting', async () => {
  let outcome: Promise<unknown> | undefined;
  const [client, clock] = await afterStall((its) => {
    const stop = new AbortController();
    const made = its.create('/node', '', { signal: stop.signal });
    outcome = made.catch((error: Error) => error.message);
    stop.abort(new Error('never mind'));
  });
  expect(await outcome).toBe('never mind');
  await clock.runUntilSettled(client.exists('/other'));
  expect(client.counters).toMatchObject({ queued: 0, queuedBytes: 0, inFlight: 0 });
  expect(await client.exists('/node')).toBe(false);
});

test('changes that are read from a listener follow one from another', async () => {
  const changes: StateChange[] = [];
  await afterStall((client) => {
    void (async () => {
      for await (const change of client.states()) changes.push(change);
    })();
  });
  const states = changes.map(({ state }) => state);
  expect(states).toEqual(['connected', 'suspended', 'expired', 'connected']);
  expect(changes.slice(1).map(({ previous }) => previous)).toEqual(states.slice(0, -1));
});
