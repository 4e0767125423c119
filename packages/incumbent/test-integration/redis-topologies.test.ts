/** Redis in more than one process: replicas, Sentinels, clusters. */
import type { RedisServer } from '@incumbent/servers';
import { startRedis, startRedisCluster, startSentinel, waitFor } from '@incumbent/servers';
import { Cluster, Redis } from 'ioredis';
import { createClientPool, createCluster, createSentinel } from 'redis';
import { describe, expect, test } from 'vitest';
import type { RedisClient } from '../src/backends/redis/index.ts';
import { openRedis } from '../src/backends/redis/open.ts';
import { vacantRecord } from '../test/support/vacant-record.ts';
import type { Library, OpenClient } from './support/redis.ts';
import {
  fieldOf,
  hasSeenLeader,
  keyOf,
  libraries,
  lossOf,
  missing,
  Stage,
  scopeOf,
  troublesOf,
} from './support/redis.ts';

async function behindSentinel(library: Library, { port }: RedisServer): Promise<OpenClient> {
  const root = { host: '127.0.0.1', port };
  const name = 'incumbent';
  if (library === 'ioredis') {
    const client = new Redis({ sentinels: [root], name });
    client.on('error', () => {});
    return { client, close: () => client.disconnect() };
  }
  const client = createSentinel({ name, sentinelRootNodes: [root] });
  client.on('error', () => {});
  await client.connect();
  return { client, close: () => void client.destroy() };
}

async function ofCluster(library: Library, { port }: RedisServer): Promise<OpenClient> {
  const host = '127.0.0.1';
  if (library === 'ioredis') {
    const client = new Cluster([{ host, port }]);
    client.on('error', () => {});
    return { client, close: () => client.disconnect() };
  }
  const client = createCluster({ rootNodes: [{ socket: { host, port } }] });
  client.on('error', () => {});
  await client.connect();
  return { client, close: () => void client.destroy() };
}

describe.skipIf(missing !== undefined).concurrent('Redis with a replica', () => {
  test('is not led through the replica, and is once that is promoted', async (context) => {
    const stage = new Stage(context);
    const primary = stage.keep(await startRedis());
    const replica = stage.keep(await startRedis({ replicaOf: primary }));
    const troubles = troublesOf(stage.name, context);
    const campaign = stage.lead(stage.election('a', await stage.client('redis', replica)));
    await waitFor('the replica is refused', async () =>
      troubles.some((each) => each.includes('read-only replica')),
    );
    await replica.promote();
    expect((await campaign).isLeading()).toBe(true);
  });

  for (const library of libraries) {
    test(`behind a Sentinel it fails over, led by one at a time (${library})`, async (context) => {
      const stage = new Stage(context);
      const primary = stage.keep(await startRedis());
      const replica = stage.keep(await startRedis({ replicaOf: primary }));
      const sentinel = stage.keep(await startSentinel({ primary }));
      const [a, b] = await Promise.all(
        ['a', 'b'].map(async (id) =>
          // Over before the failover: else the leader goes on where the replica was promoted.
          stage.election(
            id,
            stage.keep(await behindSentinel(library, sentinel)).client,
            {},
            { lease: 1_500 },
          ),
        ),
      );
      if (a === undefined || b === undefined) return;
      const first = await stage.lead(a);
      await hasSeenLeader(b);
      await waitFor('the replica has the record', async () => {
        return (await fieldOf(replica, stage.name, 'token')) === `${first.token}`;
      });
      const second = stage.lead(b);
      await primary.kill();
      await waitFor('the replica is promoted', async () => {
        const role = await replica.command('ROLE');
        return Array.isArray(role) && role[0] === 'master';
      });
      await lossOf(first);
      expect((await second).token).toBeGreaterThan(first.token);
      stage.expectNoOverlap();
    });
  }

  for (const library of libraries) {
    test(`with WAIT, a write counts only once the replica has it (${library})`, async (context) => {
      const stage = new Stage(context);
      const primary = stage.keep(await startRedis());
      const replica = stage.keep(await startRedis({ replicaOf: primary }));
      const wait = { replicas: 1, timeout: 50 };
      const client = await stage.client(library, primary);
      const first = await stage.lead(stage.election('a', client, { wait }));
      expect(await fieldOf(replica, stage.name, 'token')).toBe(`${first.token}`);
      await replica.kill();
      await lossOf(first);
      const b = stage.election('b', await stage.client(library, primary), { wait });
      await expect(b.campaign({ wait: '3s' })).rejects.toMatchObject({ code: 'NOT_ELECTED' });
      await replica.start();
      await replica.linked();
      expect((await stage.lead(b)).isLeading()).toBe(true);
      stage.expectNoOverlap();
    });
  }

  test('a write without its replicas is unknown, and is not read back before they have it', async (context) => {
    const stage = new Stage(context);
    const primary = stage.keep(await startRedis());
    const replica = stage.keep(await startRedis({ replicaOf: primary }));
    const client = await stage.client('redis', primary);
    const { signal } = new AbortController();
    const open = () =>
      openRedis(client, { wait: { replicas: 1, timeout: 50 } }).openStore(scopeOf(stage.name));
    const [store, other] = [open(), open()];
    const { version } = await store.read(signal);
    await replica.kill();
    const why = '0 of 1 replicas have it after 50 ms';
    await expect(store.swap(version, vacantRecord(stage.name, 'first'), signal)).rejects.toThrow(
      why,
    );
    // It has landed, so the next attempt conflicts. The first one is the one that is read back.
    const second = await store.swap(version, vacantRecord(stage.name, 'second'), signal);
    expect(second.outcome).toBe('conflict');
    await expect(store.read(signal)).rejects.toThrow(why);
    expect((await other.read(signal)).record?.nonce).toBe('first');
    await replica.start();
    await replica.linked();
    expect((await store.read(signal)).record?.nonce).toBe('first');
  });

  test('WAIT goes with pools and Sentinels, where connections are many', async (context) => {
    const stage = new Stage(context);
    const primary = stage.keep(await startRedis());
    const replica = stage.keep(await startRedis({ replicaOf: primary }));
    const sentinel = stage.keep(await startSentinel({ primary }));
    const pool = createClientPool({ socket: { host: '127.0.0.1', port: primary.port } });
    pool.on('error', () => {});
    await pool.connect();
    stage.keep({ close: () => pool.destroy() });
    const { client } = stage.keep(await behindSentinel('redis', sentinel));
    const wait = { replicas: 1 };
    const first = await stage.lead(stage.election('a', pool, { wait }));
    const waiting = stage.lead(stage.election('b', client, { wait }));
    await first[Symbol.asyncDispose]();
    const second = await waiting;
    expect(await fieldOf(replica, stage.name, 'token')).toBe(`${second.token}`);
    stage.expectNoOverlap();
  });
});

describe.skipIf(missing !== undefined).concurrent('a Redis cluster', () => {
  test('holds elections on all its nodes, by both libraries', async (context) => {
    const servers = await startRedisCluster(3);
    context.onTestFinished(async () => {
      await Promise.all(servers.map((server) => server.close()));
    });
    const slots = new Set<unknown>();
    await Promise.all(
      ['spread-0', 'spread-1', 'spread-2', 'spread-3'].map(async (name) => {
        const stage = new Stage(context, name);
        const [one, other] = await Promise.all(
          libraries.map(async (library, index) =>
            stage.keep(await ofCluster(library, servers[index] as RedisServer)),
          ),
        );
        if (one === undefined || other === undefined) return;
        const a = stage.election('a', one.client);
        const b = stage.election('b', other.client);
        const first = await stage.lead(a);
        const waiting = stage.lead(b);
        await waitFor('both are listed', async () => {
          const ids = (await a.candidates()).map(({ id }) => id);
          return ids.join() === 'a,b';
        });
        await first.guard.set(`{${stage.name}}:report`, 'x');
        await first[Symbol.asyncDispose]();
        expect((await waiting).token).toBeGreaterThan(first.token);
        stage.expectNoOverlap();
        slots.add(await servers[0]?.command('CLUSTER', 'KEYSLOT', `{${stage.name}}`));
      }),
    );
    const thirds = new Set([...slots].map((slot) => Math.floor(Number(slot) / 5_462)));
    expect(thirds.size).toBe(3);
  });

  test('moves an election to another node while it is led', async (context) => {
    const servers = await startRedisCluster(2);
    const stages = libraries.map(() => new Stage(context));
    context.onTestFinished(async () => {
      await Promise.all(servers.map((server) => server.close()));
    });
    const [one, other] = servers as [RedisServer, RedisServer];
    const terms = await Promise.all(
      stages.map(async (stage, index) => {
        const { client } = stage.keep(await ofCluster(libraries[index] as Library, one));
        return stage.lead(stage.election('a', client, { durable: true }, { lease: 8_000 }));
      }),
    );
    for (const [index, { name }] of stages.entries()) {
      const key = keyOf(name);
      const slot = Number(await one.command('CLUSTER', 'KEYSLOT', key));
      const [from, to] = slot < 8_192 ? [one, other] : [other, one];
      const ids = await Promise.all(
        [from, to].map(async (server) => String(await server.command('CLUSTER', 'MYID'))),
      );
      const life = await fieldOf(from, name, 'life');
      await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[0] as string);
      await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids[1] as string);
      await from.command('MIGRATE', '127.0.0.1', to.port, '', 0, 5_000, 'KEYS', key);
      for (const server of [to, from]) {
        await server.command('CLUSTER', 'SETSLOT', slot, 'NODE', ids[1] as string);
      }
      await waitFor('the leader has confirmed there', async () => {
        expect(terms[index]?.signal.reason).toBe(undefined);
        return (await fieldOf(to, name, 'life')) !== life;
      });
      const version = await fieldOf(to, name, 'version');
      await waitFor('and goes on to', async () => (await fieldOf(to, name, 'version')) !== version);
      expect(terms[index]?.isLeading()).toBe(true);
    }
  });

  test('refuses a client that is not made for one, with what to do', async (context) => {
    const stage = new Stage(context);
    const servers = await startRedisCluster(2);
    for (const server of servers) stage.keep(server);
    const troubles = troublesOf(stage.name, context);
    const clients = await Promise.all(servers.map((server) => stage.client('redis', server)));
    // One of them has the key, the other one says so.
    const stop = new AbortController();
    const campaigns = clients.map((client, index) =>
      stage.election(`${index}`, client).campaign({ signal: stop.signal }),
    );
    const term = await Promise.any(campaigns);
    await waitFor('the other one says so', async () => troubles.length > 0);
    stop.abort(new Error('enough'));
    await Promise.allSettled(campaigns);
    await term[Symbol.asyncDispose]();
    expect(troubles.join()).toContain('use a cluster client');
  });

  test('takes no WAIT', async (context) => {
    const client: RedisClient = new Cluster([{ port: 1 }], { lazyConnect: true });
    const stage = new Stage(context);
    expect(() => stage.election('a', client, { wait: { replicas: 1 } })).toThrow(
      'min-replicas-to-write',
    );
  });
});
