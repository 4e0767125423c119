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

interface Invoice {
  readonly customer: string;
  readonly due: string;
  readonly token: number;
  readonly worker: number;
}

/** All copies work, and no job is made twice. */
function judge(invoices: readonly Invoice[]): void {
  expect(new Set(invoices.map(({ worker }) => worker)).size, 'both copies work').toBe(2);
  const jobs = invoices.map(({ customer, due }) => `${customer} ${due}`);
  expect(jobs, 'no job is made twice').toEqual([...new Set(jobs)]);
}

/** Tokens by when the jobs were due: who works on them may be late. */
function tokensIn(invoices: readonly Invoice[]): number[] {
  return [...invoices]
    .sort((a, b) => Date.parse(a.due) - Date.parse(b.due) || a.token - b.token)
    .map(({ token }) => token);
}

describe.skipIf(isMissing(redisAvailable())).concurrent('BullMQ on Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());

  test('one copy decides which work is due, all work', async () => {
    const client = await createClient({ url: server.url }).connect();
    for (const customer of customers) await client.hSet('customers', customer, '0');
    await using copies = await Copies.of('queue/bullmq', {
      REDIS_URL: server.url,
      EVERY_MS: '400',
      LEASE: '1s',
    });
    const election = createElection({ name: 'invoice-scheduler', backend: redis(client) });
    const sent = async () =>
      (await client.lRange('sent', 0, -1)).map((text): Invoice => {
        const { customer, due, token, worker } = JSON.parse(text) as Record<string, string>;
        const at = new Date(Number(due)).toISOString();
        return { customer: customer!, due: at, token: Number(token), worker: Number(worker) };
      });
    await oneLeadsAtATime({
      copies,
      leader: () => leaderOf(election),
      tokens: async () => tokensIn(await sent()),
    });
    judge(await sent());
    await election.close();
    await client.close();
  });
});

describe.skipIf(isMissing(postgresAvailable())).concurrent('pg-boss on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.close());

  test('one copy decides what is due, all work', async () => {
    const pool = new pg.Pool({ connectionString: server.url });
    await pool.query(await readFile(new URL('../queue/schema.sql', import.meta.url), 'utf8'));
    await pool.query('insert into customer (name) select unnest($1::text[])', [customers]);
    await using copies = await Copies.of('queue/pg-boss', {
      DATABASE_URL: server.url,
      EVERY: '400 milliseconds',
      LEASE: '1s',
    });
    const election = createElection({ name: 'invoice-scheduler', backend: postgres(pool) });
    await election.init();
    const sent = async () => {
      const { rows } = await pool.query('select * from invoice');
      return rows.map(
        ({ customer, due, token, worker }): Invoice => ({
          customer,
          due: due.toISOString(),
          token: Number(token),
          worker,
        }),
      );
    };
    await oneLeadsAtATime({
      copies,
      leader: () => leaderOf(election),
      tokens: async () => tokensIn(await sent()),
    });
    judge(await sent());
    await election.close();
    await pool.end();
  });
});
