/**
 * Which process has a queue?
 *
 *     DATABASE_URL=postgres://… node examples/dist/shards/who-has.js 17
 */
import { createShards } from '@incumbent/shards';
import { postgres } from 'incumbent/postgres';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
const shards = createShards({ name: 'queues', backend: postgres(pool), shards: 64 });

const queue = Number(process.argv[2] ?? 0);
const owner = await shards.owner(queue);
console.log(`queue ${queue} is at`, owner?.id, owner?.addresses);

const { members, unowned } = await shards.view();
for (const { id, owns } of members) console.log(`${id} owns ${owns} queues`);
console.log(`${unowned.length} queues have no owner`);

await shards.close();
await pool.end();
