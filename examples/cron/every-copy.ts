/** The usual beginning: a cron job that runs once in every copy of the program. */
import cron from 'node-cron';
import pg from 'pg';

const { DATABASE_URL, SCHEDULE = '*/5 * * * *' } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL });

cron.schedule(SCHEDULE, ({ date }) => sendReports(date));

async function sendReports(due: Date): Promise<void> {
  const { rows } = await pool.query<{ name: string }>('select name from customer order by name');
  for (const { name } of rows) {
    await pool.query('insert into report (due, customer, token) values ($1, $2, 0)', [due, name]);
  }
}
