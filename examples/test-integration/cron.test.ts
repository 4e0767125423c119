import { readFile } from 'node:fs/promises';
import type { PostgresServer, RedisServer } from '@incumbent/servers';
import { postgresAvailable, redisAvailable, startPostgres, startRedis } from '@incumbent/servers';
import { createElection } from 'incumbent';
import { postgres } from 'incumbent/postgres';
import { redis } from 'incumbent/redis';
import pg from 'pg';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Copies } from './support/copies.ts';
import { isMissing } from './support/need-server.ts';
import { leaderOf, oneLeadsAtATime } from './support/one-leads.ts';

const customers = ['ada', 'edsger', 'grace'];

describe.skipIf(isMissing(postgresAvailable())).concurrent('node-cron on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.close());

  /** A database of its own, with the tables of the guide. */
  async function openDatabase(name: string): Promise<pg.Pool> {
    await server.sql(`create database ${name}`);
    const pool = new pg.Pool({ connectionString: server.url.replace(/postgres$/, name) });
    await pool.query(await readFile(new URL('../cron/schema.sql', import.meta.url), 'utf8'));
    await pool.query('insert into customer select unnest($1::text[])', [customers]);
    return pool;
  }

  const environment = (name: string) => ({
    DATABASE_URL: server.url.replace(/postgres$/, name),
    SCHEDULE: '* * * * * *',
    LEASE: '1s',
  });

  test('without an election every copy does the work', async () => {
    const pool = await openDatabase('every_copy');
    await using copies = await Copies.of('cron/every-copy', environment('every_copy'));
    await copies.start();
    await copies.start();
    await copies.until('a report is written twice', async () => {
      const twice = 'select from report group by due, customer having count(*) > 1';
      return (await pool.query(twice)).rowCount !== 0;
    });
    await pool.end();
  });

  test('one copy does the work, another goes on when it is gone', async () => {
    const pool = await openDatabase('one_copy');
    await using copies = await Copies.of('cron/node-cron', environment('one_copy'));
    await using election = createElection({ name: 'reports', backend: postgres(pool) });
    await oneLeadsAtATime({
      copies,
      leader: () => leaderOf(election),
      async tokens() {
        const { rows } = await pool.query('select token from report order by id');
        return rows.map(({ token }) => Number(token));
      },
    });
    const repeated = 'select from report group by due, customer having count(*) > 1';
    expect((await pool.query(repeated)).rowCount, 'no report is written twice').toBe(0);
    await pool.end();
  });
});

describe.skipIf(isMissing(redisAvailable())).concurrent('NestJS on Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());

  test('of each period one copy does the work, also when the first one dies of it', async () => {
    await server.command('SADD', 'customers', ...customers);
    await using copies = await Copies.of('cron/nest', {
      REDIS_URL: server.url,
      LEASE: '1s',
      SCHEDULE: '*/12 * * * * *',
      PERIOD_S: '12',
      WAIT: '5s',
      HOLD: '6s',
    });
    const both = [await copies.start(), await copies.start()];
    let reports: readonly Report[] = [];
    const look = async () => {
      reports = reportsIn((await server.command('HGETALL', 'reports')) as readonly string[]);
    };
    await copies.until('somebody works', async () => {
      await look();
      return reports.length > 0;
    });
    const [first] = reports as [Report];
    const killed = both.find(({ pid }) => first.by.endsWith(`-${pid}`));
    await killed?.kill();
    await copies.until('the other one has finished the work of the same period', async () => {
      await look();
      return reports.filter(({ due }) => due === first.due).length === customers.length;
    });
    const rest = both.find((copy) => copy !== killed);
    expect(new Set(reports.map(({ by }) => by)).size).toBe(2);
    for (const { by, token } of reports) {
      if (by === first.by) expect(token).toBe(first.token);
      else expect(token).toBeGreaterThan(first.token);
    }
    // NestJS ends by the signal that it was told with, when all has been closed.
    expect(await rest?.stop()).toBe('SIGTERM');
    const client = await createClient({ url: server.url }).connect();
    const election = createElection({ name: 'reports', backend: redis(client) });
    const { history } = await election.inspect();
    expect(history.map(({ why }) => why)).toEqual(['unclean', 'work-finished']);
    await election.close();
    await client.close();
  });
});

interface Report {
  readonly due: string;
  readonly by: string;
  readonly token: number;
}

function reportsIn(hash: readonly string[]): Report[] {
  const reports: Report[] = [];
  for (let i = 0; i < hash.length; i += 2) {
    const [due = ''] = (hash[i] as string).split(' ');
    const { by, token } = JSON.parse(hash[i + 1] as string) as { by: string; token: string };
    reports.push({ due, by, token: Number(token) });
  }
  return reports;
}
