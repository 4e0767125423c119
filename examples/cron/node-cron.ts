/**
 * A cron job that runs in one of all copies: the one that leads has the schedule.
 *
 *     psql "$DATABASE_URL" -f examples/cron/schema.sql
 *     DATABASE_URL=postgres://… node examples/dist/cron/node-cron.js      # as often as you like
 */
import { once } from 'node:events';
import type { Term } from 'incumbent';
import { createElection } from 'incumbent';
import type { PostgresGuard } from 'incumbent/postgres';
import { postgres } from 'incumbent/postgres';
import cron from 'node-cron';
import pg from 'pg';

const { DATABASE_URL, SCHEDULE = '*/5 * * * *', LEASE = '15s' } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL });
pool.on('error', (error) => console.error(error.message)); // a connection that was idle is gone

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());

const backend = postgres(pool);
// `init`: the first use makes the table. Or run a migration with what `incumbent schema postgres` prints.
const election = createElection({ name: 'reports', backend, lease: LEASE, init: 'auto' });

await election.lead(keepSchedule, { signal: stop.signal }).catch((error: unknown) => {
  if (!stop.signal.aborted) throw error;
});
await election.close();
await pool.end();

/** While this copy leads. */
async function keepSchedule(term: Term<PostgresGuard>): Promise<void> {
  let running: Promise<void> | undefined;
  const run = (due: Date) => {
    running = sendReports(term, due);
    return running;
  };
  const task = cron.schedule(SCHEDULE, ({ date }) => run(date), { noOverlap: true });
  await once(term.signal, 'abort'); // until this copy must lead no more
  await task.destroy();
  await Promise.allSettled([running]); // the seat is given back after the last report
}

async function sendReports(term: Term<PostgresGuard>, due: Date): Promise<void> {
  const { rows } = await pool.query<{ name: string }>('select name from customer order by name');
  for (const { name } of rows) {
    term.assertLeading(500); // throws unless half a second of belief is left for the next step
    await pool.query(
      `insert into report (due, customer, token)
       select $1, $2, $3 where ${term.guard.sql}`, // nothing is written once a newer term leads
      [due, name, term.token],
    );
  }
}
