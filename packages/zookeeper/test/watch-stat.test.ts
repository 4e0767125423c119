import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { expect, it } from 'vitest';
import type { WatchEvent } from '../src/index.ts';
import { connect, createClient, NoNodeError } from '../src/index.ts';
import { TestClock } from './hostile-reading/clock.ts';
import { closeAfterEach } from './hostile-reading/closing.ts';

const later = closeAfterEach();

async function setup() {
  const fake = later(await FakeZooKeeper.start());
  const clock = new TestClock();
  const other = later(await connect(fake.connectionString));
  const client = later(createClient(fake.connectionString, { clock }), clock);
  await client.connected();
  const own = client.session!.id;
  const requests = () => fake.requests.filter(({ sessionId }) => sessionId === own).length;
  /** The connection breaks. `whileAway` runs before there is another one. */
  const reconnect = async (whileAway: () => Promise<unknown>) => {
    const mine = ({ sessionId }: { sessionId: bigint }) => sessionId === own;
    const barrier = fake.faults.next(
      { opcode: 'connect', predicate: mine, times: 1_000 },
      'dropBefore',
    );
    fake.faults.next({ opcode: 'sync', predicate: mine }, 'dropBefore');
    await expect(client.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOSS' });
    await whileAway();
    barrier.cancel();
    await clock.runUntil('it is connected again', () => client.state === 'connected');
    await client.sync();
  };
  const eventsOf = async (path: string) => {
    const events: WatchEvent[] = [];
    const { value, changed } = await client.watchStat(path);
    void changed.then((event) => events.push(event));
    return { isThere: value.stat !== null, events };
  };
  return { client, other, requests, reconnect, eventsOf };
}

it('ten thousand nodes that are absent are watched by as many requests', async () => {
  const { client, requests } = await setup();
  const before = requests();
  const paths = Array.from({ length: 10_000 }, (_, index) => `/absent-${index}`);
  await Promise.all(paths.map((path) => client.watchStat(path)));
  expect(requests() - before).toBe(10_000);
  expect(client.counters.watches).toBe(10_000);
});

it('a watch outlives its connection, and tells of nothing that has not happened', async () => {
  const { other, reconnect, eventsOf } = await setup();
  await other.create('/there', 'a');
  const [there, absent] = [await eventsOf('/there'), await eventsOf('/absent')];
  expect([there.isThere, absent.isThere]).toEqual([true, false]);
  await reconnect(async () => {});
  expect([there.events, absent.events]).toEqual([[], []]);
  await reconnect(async () => {
    await other.set('/there', 'b');
    await other.create('/absent');
  });
  expect(there.events).toMatchObject([{ type: 'changed', path: '/there' }]);
  expect(absent.events).toMatchObject([{ type: 'created', path: '/absent' }]);
});

it('a node that goes while the connection is away is told as deleted', async () => {
  const { other, reconnect, eventsOf } = await setup();
  await other.create('/there', 'a');
  const { events } = await eventsOf('/there');
  await reconnect(async () => {
    await other.delete('/there');
    await expect(other.get('/there')).rejects.toThrow(NoNodeError);
  });
  expect(events).toMatchObject([{ type: 'deleted', path: '/there' }]);
});
