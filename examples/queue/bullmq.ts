/**
 * Invoices by BullMQ: every copy works, one decides what is due.
 *
 *     redis-cli hset customers ada 0 grace 0
 *     REDIS_URL=redis://… node examples/dist/queue/bullmq.js      # as often as you like
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import type { Term } from 'incumbent';
import { createElection } from 'incumbent';
import type { RedisGuard } from 'incumbent/redis';
import { redis } from 'incumbent/redis';
import { Redis } from 'ioredis';

const { REDIS_URL = 'redis://localhost', LEASE = '15s' } = process.env;
const everyMs = Number(process.env['EVERY_MS'] ?? 60_000);

interface Invoice {
  readonly customer: string;
  readonly due: number;
  /** Of the term that made the job: whatever the job writes can refuse an older one. */
  readonly token: string;
}

const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null });
const queue = new Queue<Invoice>('invoices', { connection });

const worker = new Worker<Invoice>(
  'invoices',
  async ({ data }) => {
    await connection.rpush('sent', JSON.stringify({ ...data, worker: process.pid }));
  },
  { connection },
);
worker.on('error', (error) => console.error(error.message));

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());

const election = createElection({
  name: 'invoice-scheduler',
  backend: redis(connection),
  lease: LEASE,
});

await election.lead(schedule, { signal: stop.signal }).catch((error: unknown) => {
  if (!stop.signal.aborted) throw error;
});
await election.close();
await worker.close();
await queue.close();
connection.disconnect();

/** While this copy leads. */
async function schedule(term: Term<RedisGuard>): Promise<void> {
  for (;;) {
    try {
      await addDue(term);
    } catch (error) {
      term.assertLeading(); // if that is why: ends this term, and campaigns again
      console.error(`next time: ${(error as Error).message}`);
    }
    await sleep(everyMs / 4, undefined, { signal: term.signal }); // rejects when the term is over
  }
}

async function addDue(term: Term<RedisGuard>): Promise<void> {
  for (const [customer, next] of Object.entries(await connection.hgetall('customers'))) {
    const due = Math.max(Number(next), Math.floor(Date.now() / everyMs) * everyMs);
    if (due > Date.now()) continue;
    term.assertLeading(500);
    const data = { customer, due, token: `${term.token}` };
    // BullMQ adds nothing for an id that it has: two terms may both try, and one job is made.
    await queue.add('invoice', data, { jobId: `${customer}-${due}` });
    const setNext = `return redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])`;
    await term.guard.run(setNext, ['customers'], [customer, `${due + everyMs}`]);
  }
}
