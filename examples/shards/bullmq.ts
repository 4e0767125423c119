/**
 * Orders by BullMQ: those of one customer are handled in order, in one place.
 *
 *     REDIS_URL=redis://… node examples/dist/shards/bullmq.js      # as often as you like
 */
import { once } from 'node:events';
import { createShards } from '@incumbent/shards';
import { Worker } from 'bullmq';
import { redis } from 'incumbent/redis';
import { Redis } from 'ioredis';

const { REDIS_URL = 'redis://localhost', LEASE = '15s' } = process.env;
const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null });

const shards = createShards({
  name: 'order-queues',
  backend: redis(connection),
  lease: LEASE,
  shards: 16,
  own: async (shard, term) => {
    const worker = new Worker(
      `orders-${shard}`,
      async ({ data }) => {
        await connection.rpush('handled', JSON.stringify({ ...data, shard, worker: process.pid }));
      },
      { connection },
    );
    worker.on('error', (error) => console.error(error.message));
    await once(term.signal, 'abort');
    await worker.close(); // waits for the job that runs
  },
});

process.once('SIGTERM', () => {
  void shards.drain().then(() => connection.disconnect());
});
await shards.joined;
