import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createClient } from '../../src/index.ts';
import { Deque } from '../../src/session/deque.ts';
import { TestClock, until } from './clock.ts';
import { closeAfterEach } from './closing.ts';
import { connectedClient } from './connected.ts';

const later = closeAfterEach();
afterEach(() => {
  vi.restoreAllMocks();
});

describe('follow()', () => {
  it('leaves the event loop to others while the queue is full', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(
      createClient(fake.connectionString, { maxInFlight: 1, maxQueuedRequests: 4 }),
    );
    await client.connected();
    await client.create('/a', 'value');
    // A loop of microtasks would hang this test, so it is broken after a thousand rounds.
    let rounds = 0;
    let roundsAtLastTurn = 0;
    const connected = client.connected.bind(client);
    client.connected = async (options) => {
      rounds += 1;
      if (rounds > roundsAtLastTurn + 1_000) throw new Error('the event loop does not go round');
      return connected(options);
    };
    const turns = setInterval(() => {
      roundsAtLastTurn = rounds;
    }, 1);
    const delayed = fake.faults.next({ opcode: 'getData' }, 'delay');
    const calls = Array.from({ length: 5 }, () => client.get('/a'));
    const values = client.follow('/a');
    const first = values.next();
    await delayed.struck;
    delayed.release();
    try {
      expect((await first).value?.text).toBe('value');
    } finally {
      clearInterval(turns);
    }
    expect(rounds).toBeLessThan(10);
    await Promise.all(calls);
    await values.return();
  });

  it('asks a server that throttles less and less often', async () => {
    const { fake, clock, client } = await connectedClient(later);
    await client.create('/a', 'value');
    fake.faults.next({ opcode: 'getData', times: 12 }, { type: 'errorCode', code: -127 });
    const values = client.follow('/a');
    const first = values.next();
    const asked = () => fake.requests.filter(({ opcode }) => opcode === 'getData').length;
    // 100 ms, and as much more each time, up to a second.
    for (const [i, pauseMs] of [100, 200, 300, 400, 500, 600, 700, 800, 900, 1e3, 1e3].entries()) {
      await until('it has asked', () => asked() === i + 1 && client.counters.outstanding === 0);
      await clock.advance(pauseMs - 1, pauseMs - 1);
      expect(asked()).toBe(i + 1);
      await clock.advance(1, 1);
    }
    expect((await clock.runUntilSettled(first)).value?.text).toBe('value');
    await values.return();
    // An iterator that waits is ended at once.
    fake.faults.next({ opcode: 'getData', times: 2 }, { type: 'errorCode', code: -127 });
    const more = client.follow('/a');
    const next = more.next();
    await until('it has failed', () => client.counters.failed === 13);
    await Promise.all([more.return(), expect(next).resolves.toMatchObject({ done: true })]);
    expect(clock.timers).toBeLessThanOrEqual(1);
  });
});

describe('calls that were given up', () => {
  it.each([
    ['by the common bound', undefined],
    ['by a bound of their own', { timeoutMs: 20 }],
  ])('%s do not fill the memory while no server is there', async (_, options) => {
    const pushed = vi.spyOn(Deque.prototype, 'push');
    const clock = new TestClock();
    const fake = later(await FakeZooKeeper.start());
    await fake.refuse();
    const client = later(
      createClient(fake.connectionString, { clock, requestTimeoutMs: 20 }),
      clock,
    );
    const living = [1, 2, 3].map(() => client.stat('/', { timeoutMs: 60_000 }));
    let failures = 0;
    for (let round = 0; round < 50; round += 1) {
      for (let call = 0; call < 100; call += 1) {
        client.get('/a', options).catch(() => {
          failures += 1;
        });
      }
      clock.stall(25);
      clock.runDueAtOnce();
    }
    await new Promise((resolve) => setImmediate(resolve));
    expect(failures).toBe(5_000);
    expect(client.counters).toMatchObject({ queued: 3, outstanding: 3 });
    const lengths = [...new Set(pushed.mock.contexts)].map(
      (queue) => (queue as Deque<unknown>).length,
    );
    expect(Math.max(...lengths)).toBeLessThan(1_500);
    // And none of the waiting calls was swept away.
    await fake.listen();
    await clock.runUntilSettled(Promise.all(living));
  });
});

describe('the instant of sending', () => {
  it('is not that of an earlier request which was refused before it was sent', async () => {
    const fake = later(await FakeZooKeeper.start());
    const clock = new TestClock();
    const client = later(
      createClient(fake.connectionString, { clock, maxRequestBytes: 1_000 }),
      clock,
    );
    await client.connected();
    await client.sync();
    const tooLarge = client.set('/', new Uint8Array(2_000));
    await expect(tooLarge).rejects.toMatchObject({ code: 'PACKET_TOO_LARGE' });
    clock.stall(2_000);
    const sentMs = clock.monotonicMs();
    const { sentAt } = await client.sync();
    expect(sentAt.monotonicMs).toBe(sentMs);
  });
});
