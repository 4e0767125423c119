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

  test('of each period one copy does the work, and another one goes on when it dies of it', async () => {
    // A job that takes 5 s, so that there is time to kill who does it.
    const many = Array.from({ length: 50 }, (_, i) => `customer-${i}`);
    await server.command('SADD', 'customers', ...many);
    await using copies = await Copies.of('cron/nest', {
      REDIS_URL: server.url,
      LEASE: '1s',
      SCHEDULE: '* * * * * *',
      PERIOD_S: '86400',
      WAIT: '25s',
      HOLD: '28s',
    });
    const client = await createClient({ url: server.url }).connect();
    const election = createElection({ name: 'reports', backend: redis(client) });
    const reports = async () => Object.values(await client.hGetAll('reports')).map(reportIn);

    const both = [await copies.start(), await copies.start()];
    await copies.until('one works, and the other stands by', async () => {
      return (await election.candidates()).length === 2 && (await reports()).length > 0;
    });
    const { by } = (await reports())[0] as Report;
    const killed = both.find(({ pid }) => by.endsWith(`-${pid}`));
    await killed?.kill();
    await copies.until('the work of the period is done', async () => {
      return (await reports()).length === many.length;
    });
    // NestJS ends by the signal that it was told with, when all has been closed.
    expect(await both.find((copy) => copy !== killed)?.stop()).toBe('SIGTERM');

    const all = await reports();
    const before = all.filter((report) => report.by === by).map(({ token }) => token);
    const after = all.filter((report) => report.by !== by).map(({ token }) => token);
    expect(after, 'the other one has gone on').not.toEqual([]);
    expect(Math.max(...before), 'the terms follow each other').toBeLessThan(Math.min(...after));
    const { history } = await election.inspect();
    expect(history.at(-1)?.why).toBe('work-finished');
    await election.close();
    await client.close();
  });
});

interface Report {
  readonly by: string;
  readonly token: number;
}

function reportIn(text: string): Report {
  const { by, token } = JSON.parse(text) as { by: string; token: string };
  return { by, token: Number(token) };
}
