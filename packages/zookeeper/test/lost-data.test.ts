import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { expect, it } from 'vitest';
import { connect } from '../src/index.ts';

const options = { tickTimeMs: 50, minSessionTimeoutMs: 100, realTime: true };

it('comes back, in a new session, to servers that have lost their data, and says so', async () => {
  const before = await FakeZooKeeper.start({ ...options, epoch: 7 });
  const { port } = before;
  const trouble: unknown[] = [];
  const onTrouble = (message: unknown) => trouble.push(message);
  subscribe('incumbent:zookeeper:trouble', onTrouble);
  // A busy machine may take longer to connect than the session lives.
  const client = await connect(before.connectionString, {
    sessionTimeoutMs: 300,
    connectTimeoutMs: 20_000,
  });
  const states: string[] = [];
  client.onState(({ state }) => states.push(state));
  const { zxid: seen } = await client.create('/a');
  await before.close();
  const after = await FakeZooKeeper.start({ ...options, epoch: 1, port });
  try {
    const again = await client.create('/a', null, { timeoutMs: 20_000 }).catch(async () => {
      await client.connected({ timeoutMs: 20_000 });
      return client.create('/a');
    });
    expect(again.zxid).toBeLessThan(seen);
    expect(client.lastZxid).toBe(again.zxid);
    expect(states).toEqual(['suspended', 'expired', 'connected']);
    expect(trouble).toMatchObject([{ what: expect.stringContaining('lost what was seen') }]);
  } finally {
    unsubscribe('incumbent:zookeeper:trouble', onTrouble);
    await client.close();
    await after.close();
  }
});
