/**
 * Invoices by pg-boss: every copy works, one decides what is due and keeps the house.
 *
 *     psql "$DATABASE_URL" -f examples/queue/schema.sql
 *     DATABASE_URL=postgres://… node examples/dist/queue/pg-boss.js      # as often as you like
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Term } from 'incumbent';
import { createElection } from 'incumbent';
import type { PostgresGuard } from 'incumbent/postgres';
import { postgres } from 'incumbent/postgres';
import pg from 'pg';
import PgBoss from 'pg-boss';

const { DATABASE_URL = 'postgres://localhost', LEASE = '15s', EVERY = '1 minute' } = process.env;

interface Invoice {
  readonly customer: string;
  readonly due: string;
  /** Of the term that made the job: whatever the job writes can refuse an older one. */
  readonly token: string;
}

const pool = new pg.Pool({
  connectionString: DATABASE_URL,
  // While a transaction of this term is open, nobody else can begin one: a frozen copy must not.
  idle_in_transaction_session_timeout: 5_000,
});
pool.on('error', (error) => console.error(error.message)); // a connection that was idle is gone

const boss = new PgBoss({ connectionString: DATABASE_URL, supervise: false, schedule: false });
boss.on('error', (error) => console.error(error.message));
await boss.start();
await inTurn(() => boss.createQueue('invoice'));
await boss.work<Invoice>('invoice', { pollingIntervalSeconds: 0.5 }, async (jobs) => {
  for (const { data } of jobs) {
    await pool.query('insert into invoice (customer, due, token, worker) values ($1, $2, $3, $4)', [
      data.customer,
      data.due,
      data.token,
      process.pid,
    ]);
  }
});

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());

const election = createElection({
  name: 'invoice-scheduler',
  backend: postgres(pool),
  lease: LEASE,
  init: 'auto', // the first use makes the table
});

await election.lead(schedule, { signal: stop.signal }).catch((error: unknown) => {
  if (!stop.signal.aborted) throw error;
});
await election.close();
await boss.stop({ wait: true });
await pool.end();

/** One copy after the other: two that create queues at once can deadlock in the database. */
async function inTurn(create: () => Promise<unknown>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("select pg_advisory_lock(hashtext('create queues'))");
    await create();
  } finally {
    client.release(true); // the lock goes with the connection
  }
}

/** While this copy leads. */
async function schedule(term: Term<PostgresGuard>): Promise<void> {
  const keeper = new PgBoss({ connectionString: DATABASE_URL }); // expires, archives, reads cron
  keeper.on('error', (error) => console.error(error.message));
  await inTurn(() => keeper.start()); // it has queues of its own
  try {
    for (;;) {
      try {
        await addDue(term);
      } catch (error) {
        term.assertLeading(); // if that is why: ends this term, and campaigns again
        console.error(`next time: ${(error as Error).message}`);
      }
      await sleep(500, undefined, { signal: term.signal }); // rejects when the term is over
    }
  } finally {
    await keeper.stop({ wait: true });
  }
}

async function addDue(term: Term<PostgresGuard>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const { rows } = await client.query<{ name: string; next_due: Date }>(
      `update customer set next_due = next_due + $1::interval
       where next_due <= now() and ${term.guard.sql}
       returning name, next_due - $1::interval as next_due`,
      [EVERY],
    );
    const db = { executeSql: (text: string, values: unknown[]) => client.query(text, values) };
    for (const { name, next_due } of rows) {
      const invoice = { customer: name, due: next_due.toISOString(), token: `${term.token}` };
      await boss.send('invoice', invoice, { db });
    }
    await client.query('commit'); // jobs and dates together, and neither once a newer term leads
  } catch (error) {
    await client.query('rollback').catch(() => {}); // the connection may be what failed
    throw error;
  } finally {
    client.release();
  }
}
