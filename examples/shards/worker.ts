/**
 * 64 queues, each handled by exactly one process: all copies share them.
 *
 *     DATABASE_URL=postgres://… node examples/dist/shards/worker.js      # as often as you like
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ShardTerm } from '@incumbent/shards';
import { createShards } from '@incumbent/shards';
import { postgres } from 'incumbent/postgres';
import pg from 'pg';

const { DATABASE_URL, LEASE = '15s' } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL });
pool.on('error', (error) => console.error(error.message)); // a connection that was idle is gone

const shards = createShards({
  name: 'queues',
  backend: postgres(pool),
  init: 'auto', // makes the table
  lease: LEASE,
  shards: 64,
  own: handleQueue,
  onTrouble: ({ what, error }) => console.error(what, error),
});

process.once('SIGTERM', () => {
  // moves the queues of this process to the others
  void shards.drain().then(() => pool.end());
});
await shards.joined;

/** While this copy owns the queue. */
async function handleQueue(queue: number, term: ShardTerm<number>): Promise<void> {
  console.log(`queue ${queue} is ours, with token ${term.token}`);
  while (!term.signal.aborted) {
    term.assertLeading(); // before each step that only the owner may take
    await sleep(1000, undefined, { signal: term.signal }).catch(() => {});
  }
  console.log(`queue ${queue} is given up`);
}
