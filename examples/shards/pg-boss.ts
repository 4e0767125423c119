/**
 * Queues of pg-boss, each handled in one place: a shard is a queue, and its owner works off its jobs.
 *
 *     DATABASE_URL=postgres://… node examples/dist/shards/pg-boss.js      # as often as you like
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createShards } from '@incumbent/shards';
import { postgres } from 'incumbent/postgres';
import pg from 'pg';
import PgBoss from 'pg-boss';

const { DATABASE_URL = 'postgres://localhost', LEASE = '15s' } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL });
pool.on('error', (error) => console.error(error.message)); // a connection that was idle is gone
const boss = new PgBoss(DATABASE_URL);
boss.on('error', (error) => console.error(error.message));
await boss.start();

const shards = createShards({
  name: 'invoice-queues',
  backend: postgres(pool),
  init: 'auto', // makes the table
  lease: LEASE,
  shards: 16,
  own: async (shard, term) => {
    const queue = `invoices-${shard}`;
    await boss.createQueue(queue);
    while (!term.signal.aborted) {
      const [job] = await boss.fetch<{ n: number }>(queue);
      if (job === undefined) {
        await sleep(500, undefined, { signal: term.signal }).catch(() => {});
        continue;
      }
      const { n } = job.data;
      await pool.query('INSERT INTO handled VALUES ($1, $2, $3)', [shard, n, process.pid]);
      await boss.complete(queue, job.id);
    }
  },
});

process.once('SIGTERM', () => {
  void shards
    .drain()
    .then(() => boss.stop())
    .then(() => pool.end());
});
await shards.joined;
