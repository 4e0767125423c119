import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import { createClient, RequestTimeoutError } from '../../src/index.ts';
import { TestClock, until } from './clock.ts';
import { closeAfterEach } from './closing.ts';

const later = closeAfterEach();
const timeoutMs = 9_000;

async function setup() {
  const fake = later(await FakeZooKeeper.start({ tickTimeMs: 500 }));
  const clock = new TestClock();
  const client = later(
    createClient(fake.connectionString, {
      ...{ clock, sessionTimeoutMs: timeoutMs, requestTimeoutMs: 3_000 },
    }),
    clock,
  );
  const sent = () => fake.requests.filter(({ opcode }) => opcode === 'create2');
  return { fake, clock, client, sent };
}

describe('a protected create', () => {
  it.each([
    [false, '/p/x', '/p/y'],
    [true, '/p/xy', '/p/x'],
  ])(
    'is not taken for another one with the same guid (sequential: %s)',
    async (sequential, x, y) => {
      const { fake, clock, client } = await setup();
      await client.connected();
      await client.create('/p');
      const options = { protected: 'my-guid-01', sequential };
      const first = await client.create(x, 'x', options);
      fake.faults.next({ opcode: 'create2', path: /my-guid/ }, 'dropBefore');
      const second = await clock.runUntilSettled(client.create(y, 'y', options));
      expect(second.path).not.toBe(first.path);
      expect((await client.get(second.path)).text).toBe('y');
    },
  );

  it.each([
    ['made when there was a session', true],
    ['made before there was one', false],
  ])('%s ends with that session, even with an unknown outcome', async (_, wait) => {
    const { fake, clock, client, sent } = await setup();
    if (wait) await client.connected();
    fake.faults.next('create2', 'silence');
    const create = client.create('/a', 'x', { protected: true, timeoutMs: 60_000 });
    const refused = expect(create).rejects.toMatchObject({
      code: 'CONNECTION_LOSS',
      maybeApplied: true,
      cause: { code: 'SESSION_EXPIRED' },
    });
    await until('it is sent', () => sent().length === 1);
    clock.stall(0.96 * timeoutMs);
    expect(client.state).toBe('expired');
    await refused;
    await clock.runUntil('there is a new session', () => client.state === 'connected');
    await client.sync();
    expect(sent()).toHaveLength(1);
  });

  it('has a bound, also when every look for the node ends the connection', async () => {
    const { fake, clock, client } = await setup();
    await client.connected();
    fake.faults.next('create2', 'dropAfter');
    fake.faults.next({ opcode: 'getChildren', times: 1_000 }, 'dropAfter');
    const create = client.create('/a', 'x', { protected: true });
    const error = await clock.runUntilSettled(create.catch((reason: Error) => reason));
    expect(error).toBeInstanceOf(RequestTimeoutError);
    // Twice the limit of one request.
    expect((error as Error).message).toContain('not answered within 6000 ms');
  });

  it('sends the same data again, whatever became of the array', async () => {
    const { fake, clock, client } = await setup();
    await client.connected();
    fake.faults.next('create2', 'dropBefore');
    const data = Uint8Array.of(1, 2, 3);
    const create = client.create('/a', data, { protected: true });
    await until('it is sent', () => client.counters.inFlight === 1);
    data.fill(0);
    const { path } = await clock.runUntilSettled(create);
    expect([...fake.tree().get(path)!.data!]).toEqual([1, 2, 3]);
  });
});

describe('a transaction', () => {
  it('has the data of when its operations were added', async () => {
    const { fake, client } = await setup();
    await client.connected();
    await client.create('/set');
    const data = Uint8Array.of(1, 2, 3);
    const transaction = client.transaction().create('/made', data).set('/set', data);
    data.fill(0);
    await transaction.commit();
    expect([...fake.tree().get('/made')!.data!]).toEqual([1, 2, 3]);
    expect([...fake.tree().get('/set')!.data!]).toEqual([1, 2, 3]);
  });
});
