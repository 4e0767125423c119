/** Where commands go, and what the client does when that changes. The test plays the manager. */
import type { RedisServer } from '@incumbent/servers';
import { describe, expect, test } from 'vitest';
import {
  addressOf,
  ClientStage,
  libraries,
  missing,
  raw,
  useServers,
  watched,
} from './support/client-stage.ts';
import { until } from './support/waiting.ts';

/** Resolves when a replica has the first count, which it gets after the client's reply. */
function copied(replica: RedisServer): Promise<unknown> {
  return until('it is copied', async () => (await replica.command('GET', 'counter')) === '1');
}

describe.skipIf(missing !== undefined).concurrent('a client', () => {
  const servers = useServers(2);
  const both = () => servers.nodes as readonly [RedisServer, RedisServer];

  for (const library of libraries) {
    test(`writes to the primary and reads from a replica (${library})`, async (context) => {
      const [primary, replica] = both();
      const stage = await ClientStage.open(servers, context);
      await stage.publish(addressOf(primary), [addressOf(replica)]);
      const failover = await stage.client(library);
      const key = `${library}:routed`;
      expect(failover.current).toEqual({
        primary: addressOf(primary),
        replicas: [addressOf(replica)],
        unavailable: [],
        term: 1,
      });
      await failover.redis.set(key, '1');
      expect(await primary.command('GET', key)).toBe('1');
      // Only the node that was asked counts a failed lookup.
      const misses = async ({ command }: RedisServer) =>
        /keyspace_misses:(\d+)/.exec(String(await command.call(replica, 'INFO', 'stats')))?.[1];
      const before = Number(await misses(replica));
      expect(await failover.redis.get(`${key}:absent`)).toBe(null);
      expect(Number(await misses(replica))).toBeGreaterThan(before);
    });

    test(`reads from the primary when no replica answers (${library})`, async (context) => {
      const [primary] = both();
      const stage = await ClientStage.open(servers, context);
      const gone = await stage.proxy(primary);
      gone.refuse();
      await stage.publish(addressOf(primary), [addressOf(gone)]);
      const failover = await stage.client(library);
      await failover.redis.set(`${library}:fallback`, 'here');
      expect(await failover.redis.get(`${library}:fallback`)).toBe('here');
    });

    test(`tells the term and the node of a write (${library})`, async (context) => {
      const [primary] = both();
      const stage = await ClientStage.open(servers, context);
      await stage.publish(addressOf(primary));
      const failover = await stage.client(library);
      const told = await failover.write(async (redis, { term, primary: node }) => {
        await redis.set(`${library}:told`, '2');
        return { term, node };
      });
      expect(told).toEqual({ term: 1, node: addressOf(primary) });
    });

    test(`opens another connection for another term of the same node (${library})`, async (context) => {
      const [primary] = both();
      const stage = await ClientStage.open(servers, context);
      await stage.publish(addressOf(primary));
      const failover = await stage.client(library);
      const id = () =>
        failover.write(async (redis, { term }) => ({
          term,
          id: await raw(redis, 'CLIENT', 'ID'),
        }));
      const first = await id();
      expect((await id()).id).toBe(first.id);
      await stage.publish(addressOf(primary));
      await until('the next term is known', () => failover.current.term === 2);
      const second = await id();
      expect(second.term).toBe(2);
      expect(second.id).not.toBe(first.id);
      await until('the connection of the first is closed', async () => {
        const list = String(await primary.command('CLIENT', 'LIST', 'ID', Number(first.id)));
        return list.trim() === '';
      });
    });

    test(`waits for a primary that cannot be reached, and sends once (${library})`, async (context) => {
      const [primary] = both();
      const stage = await ClientStage.open(servers, context);
      const proxy = await stage.proxy(primary);
      await stage.publish(addressOf(proxy));
      proxy.refuse();
      const failover = await stage.client(library);
      const writing = watched(failover.redis.incr(`${library}:unreached`));
      const other = failover.redis.incr(`${library}:unreached`);
      await until('it has tried', () => failover.redis.isReady);
      expect(writing.settled).toBe(false);
      await proxy.pass();
      await Promise.all([writing.promise, other]);
      expect(await primary.command('GET', `${library}:unreached`)).toBe('2');
    });

    test(`does not know the outcome when the connection breaks before the reply (${library})`, async (context) => {
      const [primary] = both();
      const stage = await ClientStage.open(servers, context);
      const proxy = await stage.proxy(primary);
      await stage.publish(addressOf(proxy));
      const failover = await stage.client(library);
      const key = `${library}:broken`;
      await failover.redis.incr(key);
      proxy.dropReplies();
      const writing = watched(failover.redis.incr(key));
      await until('it is executed', async () => (await primary.command('GET', key)) === '2');
      proxy.cut();
      await proxy.pass();
      await expect(writing.promise).rejects.toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        term: 1,
        primary: addressOf(proxy),
      });
      // The client did not send it again.
      expect(await failover.redis.incr(key)).toBe(3);
    });

    test(`repeats it with retryAmbiguous (${library})`, async (context) => {
      const [primary] = both();
      const stage = await ClientStage.open(servers, context);
      const proxy = await stage.proxy(primary);
      await stage.publish(addressOf(proxy));
      const failover = await stage.client(library, { retryAmbiguous: true });
      const key = `${library}:repeated`;
      await failover.redis.incr(key);
      proxy.dropReplies();
      const writing = failover.redis.incr(key);
      await until('it is executed', async () => (await primary.command('GET', key)) === '2');
      proxy.cut();
      await proxy.pass();
      expect(await writing).toBe(3);
    });

    test(`gives up on a node that stands still after commandTimeout (${library})`, async (context) => {
      const [primary] = both();
      const stage = await ClientStage.open(servers, context);
      const proxy = await stage.proxy(primary);
      await stage.publish(addressOf(proxy));
      const failover = await stage.client(library, { commandTimeout: 300 });
      await failover.redis.incr(`${library}:still`);
      proxy.silence();
      await expect(failover.redis.incr(`${library}:still`)).rejects.toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        message: expect.stringContaining('did not answer within 300ms'),
      });
    });

    test(`retries what a node refuses because it is a replica by now (${library})`, async (context) => {
      const stage = await ClientStage.open(servers, context);
      const old = await stage.redis();
      const next = await stage.redis({ replicaOf: old });
      await stage.publish(addressOf(old), [addressOf(next)]);
      const failover = await stage.client(library);
      await failover.redis.incr('counter');
      await copied(next);
      await next.promote();
      await old.follow(next);
      const writing = watched(failover.redis.incr('counter'));
      const inTransaction = watched(
        failover.write(async (redis) => {
          await redis.incr('counter');
        }),
      );
      await until('the old one has refused', async () =>
        /errorstat_READONLY/.test(String(await old.command('INFO', 'errorstats'))),
      );
      expect(writing.settled || inTransaction.settled).toBe(false);
      await stage.publish(addressOf(next), [addressOf(old)]);
      await Promise.all([writing.promise, inTransaction.promise]);
      expect(await next.command('GET', 'counter')).toBe('3');
    });

    test(`carries what a paused primary holds over to the next, once (${library})`, async (context) => {
      const stage = await ClientStage.open(servers, context);
      const old = await stage.redis();
      const next = await stage.redis({ replicaOf: old });
      await stage.publish(addressOf(old), [addressOf(next)]);
      const failover = await stage.client(library);
      await failover.redis.incr('counter');
      await copied(next);
      await old.command('CLIENT', 'PAUSE', 30_000, 'WRITE');
      const writing = watched(failover.redis.incr('counter'));
      await until('it waits there', async () =>
        /blocked_clients:1/.test(String(await old.command('INFO', 'clients'))),
      );
      await stage.revoke(addressOf(old));
      await until('the client knows', () => failover.current.primary === undefined);
      expect(writing.settled).toBe(false);
      await next.promote();
      await old.follow(next);
      await old.command('CLIENT', 'UNPAUSE');
      await stage.publish(addressOf(next), [addressOf(old)]);
      expect(await writing.promise).toBe(2);
      expect(await next.command('GET', 'counter')).toBe('2');
    });

    test(`follows a replica that was promoted after the primary was killed (${library})`, async (context) => {
      const stage = await ClientStage.open(servers, context);
      const old = await stage.redis();
      const next = await stage.redis({ replicaOf: old });
      await stage.publish(addressOf(old), [addressOf(next)]);
      const failover = await stage.client(library);
      await failover.redis.set('key', 'before');
      await old.kill();
      const writing = failover.redis.set('key', 'after').catch((error: unknown) => error);
      await next.promote();
      await stage.revoke(addressOf(old));
      await stage.publish(addressOf(next));
      // The write during the death of the primary may be of unknown outcome, later ones may not.
      await writing;
      await failover.redis.set('key', 'then');
      expect(await next.command('GET', 'key')).toBe('then');
      expect(await failover.redis.get('key')).toBe('then');
    });
  }
});
