import type { PostgresServer, RedisServer } from '@incumbent/servers';
import { postgresAvailable, redisAvailable, startPostgres, startRedis } from '@incumbent/servers';
import { createShards } from '@incumbent/shards';
import { Queue } from 'bullmq';
import { postgres } from 'incumbent/postgres';
import { redis } from 'incumbent/redis';
import { Redis } from 'ioredis';
import pg from 'pg';
import PgBoss from 'pg-boss';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Copies } from './support/copies.ts';
import { isMissing } from './support/need-server.ts';

describe
  .skipIf(isMissing(postgresAvailable()))
  .concurrent('a worker for each queue, on PostgreSQL', () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.close());

    test('the queues of a copy that is killed, and of one that is stopped, go to the others', async () => {
      const pool = new pg.Pool({ connectionString: server.url });
      const shards = createShards({
        name: 'queues',
        backend: postgres(pool),
        shards: 64,
        init: 'auto',
      });
      await using copies = await Copies.of('shards/worker', {
        DATABASE_URL: server.url,
        LEASE: '2s',
      });
      const [a, b] = [await copies.start(), await copies.start(), await copies.start()];
      const counts = async () => (await shards.view()).members.map(({ owns }) => owns).sort();
      const until = (wanted: readonly number[]) =>
        copies.until(`${wanted} queues each`, async () => `${await counts()}` === `${wanted}`);
      await until([21, 21, 22]);
      await a.kill();
      await until([32, 32]);
      expect(await b.stop()).toBe('exit code 0');
      await until([64]);

      await using looks = await Copies.of('shards/who-has', { DATABASE_URL: server.url });
      await looks.start();
      await looks.until('it says what is owned', async () =>
        /owns 64 queues\n0 queues have no owner/.test(await looks.output()),
      );
      await shards.close();
      await pool.end();
    });
  });

describe
  .skipIf(isMissing(postgresAvailable()))
  .concurrent('queues of pg-boss, on PostgreSQL', () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.close());

    test('jobs of one queue are handled in order, by the copy that owns it', async () => {
      const pool = new pg.Pool({ connectionString: server.url });
      await pool.query('CREATE TABLE handled (shard int, n int, worker int)');
      const shards = createShards({
        name: 'invoice-queues',
        backend: postgres(pool),
        shards: 16,
        init: 'auto',
      });
      await using copies = await Copies.of('shards/pg-boss', {
        DATABASE_URL: server.url,
        LEASE: '4s',
      });
      const [a] = await Promise.all([copies.start(), copies.start()]);
      await copies.until('both have eight', async () => {
        const { members } = await shards.view();
        return members.length === 2 && members.every(({ owns }) => owns === 8);
      });
      const boss = new PgBoss(server.url);
      await boss.start();
      const send = async (from: number) => {
        for (let shard = 0; shard < 16; shard += 1) {
          await boss.createQueue(`invoices-${shard}`);
          for (let n = from; n < from + 3; n += 1) await boss.send(`invoices-${shard}`, { n });
        }
      };
      const handled = async () =>
        (await pool.query<{ shard: number; n: number; worker: number }>('SELECT * FROM handled'))
          .rows;
      await send(0);
      await copies.until('all are handled', async () => (await handled()).length === 48);
      const all = await handled();
      for (let shard = 0; shard < 16; shard += 1) {
        const own = all.filter((job) => job.shard === shard);
        expect(own.map(({ n }) => n)).toEqual([0, 1, 2]);
        expect(new Set(own.map(({ worker }) => worker)).size).toBe(1);
      }
      expect(await a?.stop()).toBe('exit code 0');
      await send(3);
      await copies.until('the others do the rest', async () => (await handled()).length === 96);
      const late = (await handled()).slice(48);
      expect(new Set(late.map(({ worker }) => worker)).size).toBe(1);
      await boss.stop();
      await shards.close();
      await pool.end();
    });
  });

describe.skipIf(isMissing(redisAvailable())).concurrent('queues of BullMQ, on Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());

  test('jobs of one queue are handled by the copy that owns it', async () => {
    const connection = new Redis(server.url, { maxRetriesPerRequest: null });
    const shards = createShards({ name: 'order-queues', backend: redis(connection), shards: 16 });
    await using copies = await Copies.of('shards/bullmq', { REDIS_URL: server.url, LEASE: '2s' });
    await Promise.all([copies.start(), copies.start()]);
    await copies.until('both have eight', async () => {
      const { members } = await shards.view();
      return members.length === 2 && members.every(({ owns }) => owns === 8);
    });
    for (let shard = 0; shard < 16; shard += 1) {
      const queue = new Queue(`orders-${shard}`, { connection });
      for (let n = 0; n < 3; n += 1) await queue.add('order', { n });
      await queue.close();
    }
    const handled = async () =>
      (await connection.lrange('handled', 0, -1)).map(
        (text) => JSON.parse(text) as { n: number; shard: number; worker: number },
      );
    await copies.until('all are handled', async () => (await handled()).length === 48);
    const all = await handled();
    for (let shard = 0; shard < 16; shard += 1) {
      const own = all.filter((job) => job.shard === shard);
      expect(own.map(({ n }) => n)).toEqual([0, 1, 2]);
      expect(new Set(own.map(({ worker }) => worker)).size).toBe(1);
    }
    await shards.close();
    connection.disconnect();
  });
});
