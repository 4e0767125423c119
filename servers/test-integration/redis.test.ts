import { describe, expect, test } from 'vitest';
import {
  redisAvailable,
  startRedis,
  startRedisCluster,
  startSentinel,
  waitFor,
} from '../src/index.ts';

const reason = redisAvailable();
if (reason !== undefined && process.env['CI'] === 'true') throw new Error(reason);

describe.skipIf(reason !== undefined)('a Redis of our own', () => {
  test('forgets everything when it is started again, unless it writes to disk', async () => {
    await using volatile = await startRedis();
    await using durable = await startRedis({ appendFsync: 'always' });
    for (const server of [volatile, durable]) {
      await server.command('SET', 'k', 'v');
      await server.kill();
      await server.start();
    }
    expect(await volatile.command('GET', 'k')).toBeNull();
    expect(await durable.command('GET', 'k')).toBe('v');
  });

  test('is followed by a replica, which a Sentinel promotes when it dies', async () => {
    await using primary = await startRedis();
    await using replica = await startRedis({ replicaOf: primary });
    await using sentinel = await startSentinel({ primary });
    await expect(replica.command('SET', 'k', 'v')).rejects.toThrow('READONLY');
    await primary.kill();
    await waitFor('the replica is promoted', async () => {
      const address = await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'incumbent');
      return Array.isArray(address) && address[1] === `${replica.port}`;
    });
    await waitFor('it takes writes', async () => (await replica.command('SET', 'k', 'v')) === 'OK');
  });

  test('comes as a cluster that shares the slots', async () => {
    const servers = await startRedisCluster(3);
    try {
      const state = String(await servers[2]?.command('CLUSTER', 'INFO'));
      expect(state).toContain('cluster_slots_assigned:16384');
    } finally {
      await Promise.all(servers.map((server) => server.close()));
    }
  });
});
