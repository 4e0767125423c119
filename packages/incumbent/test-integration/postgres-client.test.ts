import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PostgresServer } from '@incumbent/servers';
import { startPgBouncer, startPostgres } from '@incumbent/servers';
import type { TestCertificates } from '@incumbent/zookeeper-testing';
import { createCertificates } from '@incumbent/zookeeper-testing';
import type pg from 'pg';
import postgresJs from 'postgres';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { Connection } from '../src/backends/postgres/connection.ts';
import type { PostgresClient } from '../src/backends/postgres/index.ts';
import { examinePostgres } from '../src/backends/postgres/index.ts';
import { StoreUnsuitableError } from '../src/base/errors.ts';
import { long, missing, oldTable, Stage, until } from './support/postgres.ts';

let server: PostgresServer;
let certificates: TestCertificates;
let directory = '';

beforeAll(async () => {
  if (missing !== undefined) return;
  directory = await mkdtemp(join(tmpdir(), 'incumbent-postgres-tls-'));
  certificates = await createCertificates(directory);
  server = await startPostgres({ tls: certificates, settings: { max_connections: 200 } });
  await server.sql(oldTable);
});

afterAll(async () => {
  await server?.close();
  await rm(directory, { recursive: true, force: true });
});

function waiting(term: { readonly signal: AbortSignal }): Promise<unknown> {
  return term.signal.aborted ? Promise.resolve() : once(term.signal, 'abort');
}

describe.skipIf(missing !== undefined)('a client', () => {
  test.concurrent.for([
    [
      'the Pool of pg',
      (stage: Stage) => {
        const pool = stage.pool();
        return { client: pool as PostgresClient, end: () => pool.end() };
      },
    ],
    [
      'the sql of postgres',
      (stage: Stage) => {
        const sql = stage.sql();
        return { client: sql as PostgresClient, end: () => sql.end() };
      },
    ],
    [
      'a Client of pg',
      async (stage: Stage) => {
        const client = await stage.client();
        return { client: client as PostgresClient, end: () => client.end() };
      },
    ],
  ] as const)('that is closed in mid-term ends it: %s', async ([, open], context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const { client, end } = await open(stage);
    const leader = stage.election('a', client);
    const term = await stage.lead(leader);
    const successor = stage.election('b', stage.pool()).campaign();
    // Resolves: no connection of ours is left in it.
    await end();
    await waiting(term);
    await term[Symbol.asyncDispose]();
    expect((await term.ended).released).toBe(false);
    await (await successor)[Symbol.asyncDispose]();
    stage.expectNoOverlap();
    await expect(leader.campaign()).rejects.toThrow(StoreUnsuitableError);
    await expect(leader.campaign()).rejects.toThrow(/ended/);
  });

  test.concurrent('of pg that is not a Pool loses the term with its connection, and says why', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const client = await stage.client();
    const leader = stage.election('a', client);
    const term = await stage.lead(leader);
    const { rows } = await client.query('select pg_backend_pid() as pid');
    await server.sql(`select pg_terminate_backend(${rows[0].pid})`);
    await waiting(term);
    await term[Symbol.asyncDispose]();
    await expect(leader.campaign()).rejects.toThrow(
      'a Client does not connect again: hand in a Pool',
    );
  });

  test.concurrent.for(['pg', 'postgres'] as const)(
    'of %s whose connections are all ended by the server leads on',
    async (driver, context) => {
      const { expect } = context;
      const stage = new Stage(context, server.url);
      const application_name = `ended-${driver}`;
      const client: PostgresClient =
        driver === 'pg'
          ? stage.pool({ application_name })
          : stage.sql({ connection: { application_name } });
      const leader = stage.election('a', client, {}, long);
      const waits = stage.election('b', client, {}, { ...long, pollEvery: 200 });
      const term = await stage.lead(leader);
      const stop = new AbortController();
      const waited = waits.campaign({ signal: stop.signal });
      const names = async () => (await leader.candidates()).map(({ id }) => id).join();
      await until('b waits', async () => (await names()) === 'a,b');
      for (let times = 0; times < 3; times += 1) {
        await server.sql(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${application_name}'`,
        );
        // Listed by the connection that listens: it has listened again.
        await until('b waits again', async () => (await names().catch(() => '')) === 'a,b');
      }
      expect(term.isLeading()).toBe(true);
      stop.abort(new Error('done'));
      await expect(waited).rejects.toThrow('done');
      await until('b is off the list', async () => (await names()) === 'a');
      await term[Symbol.asyncDispose]();
    },
  );

  test.concurrent('whose entry in the list was refused is listed by its next look', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const pool = stage.pool({});
    const six = { lease: 6_000 };
    const leader = stage.election('a', pool, {}, six);
    const term = await stage.lead(leader);
    const refusal = `refuses_${stage.name.replace(/\W/g, '_')}`;
    await server.sql(
      `create function ${refusal}() returns trigger language plpgsql as $$ begin
         raise exception 'the list is full'; end $$;
       create trigger ${refusal} before update on incumbent_election for each row
         when (new.name = '${stage.name}' and new.waiting <> old.waiting)
         execute function ${refusal}()`,
    );
    const troubles: string[] = [];
    const onTrouble = ({ what }: { readonly what: string }) => troubles.push(what);
    const stop = new AbortController();
    const waited = stage
      .election('b', pool, {}, { ...six, onTrouble })
      .campaign({ signal: stop.signal });
    const names = async () => (await leader.candidates()).map(({ id }) => id).join();
    await until('it was refused', () => troubles.includes('listing the candidate'));
    expect(await names()).toBe('a');
    await server.sql(`drop function ${refusal} cascade`);
    await until('b waits', async () => (await names()) === 'a,b');
    stop.abort(new Error('done'));
    await expect(waited).rejects.toThrow('done');
    await until('b is off the list', async () => (await names()) === 'a');
    await term[Symbol.asyncDispose]();
  });

  test.concurrent('with an exhausted Pool: the election goes on by the connection that listens', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const pool = stage.pool({ max: 3 });
    const term = await stage.lead(stage.election('a', pool, {}, long));
    await until('it listens', () => Connection.of(pool).wakeUps.work);
    const taken = await Promise.all([pool.connect(), pool.connect()]);
    context.onTestFinished(() => {
      for (const each of taken) each.release();
    });
    expect(pool.idleCount).toBe(0);
    await stage.renewed(server, 5);
    expect(term.isLeading()).toBe(true);
    await term[Symbol.asyncDispose]();
  });

  test.concurrent('with an exhausted Pool that cannot listen says so, and sends nothing late', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const pool = stage.pool({ max: 2 });
    const taken = await Promise.all([pool.connect(), pool.connect()]);
    const election = stage.election('a', pool);
    await expect(election.campaign({ wait: 1_000 })).rejects.toThrow('was not won within');
    expect(stage.troubles.join('\n')).toContain('all 2 connections of the Pool are in use');
    for (const each of taken) each.release();
    // Calls that were still waiting for a connection have their turn before some of these.
    for (let asked = 0; asked < 20; asked += 1) await pool.query('select 1');
    const { rows } = await pool.query('select from incumbent_election where name = $1', [
      stage.name,
    ]);
    expect(rows.length).toBe(0);
    await (await election.campaign())[Symbol.asyncDispose]();
  });

  test.concurrent('with a Pool of one connection polls, and says so', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const [pool, other] = [stage.pool({ max: 1 }), stage.pool({ max: 1 })];
    const term = await stage.lead(stage.election('a', pool));
    const following = stage.election('b', other).campaign();
    await until('it is said', () => stage.troubles.some((text) => text.includes('max: 1')));
    await term[Symbol.asyncDispose]();
    await (await following)[Symbol.asyncDispose]();
    expect((await examinePostgres(pool)).noWakeUps).toContain('max: 1');
  });

  test.concurrent('that the server does not let in says so at once', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    for (const [broken, why] of [
      [server.url.replace('postgres@', 'nobody@'), 'role "nobody" does not exist'],
      [server.url.replace(/postgres$/, 'nowhere'), 'database "nowhere" does not exist'],
    ] as const) {
      const wrong = new Stage(context, broken);
      for (const client of [wrong.pool(), wrong.sql()]) {
        const error = await stage
          .election('a', client)
          .campaign()
          .catch((e: unknown) => e);
        expect(error).toBeInstanceOf(StoreUnsuitableError);
        expect(String(error)).toContain(why);
      }
    }
  });

  test.concurrent('without TLS where it is wanted, or with a certificate that is not trusted', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const ca = certificates.ca.text;
    await using plain = await startPostgres();
    for (const [client, why] of [
      [stage.pool({ ssl: true }), /self.signed|unable to verify|unable to get/i],
      [stage.sql({ ssl: 'verify-full' }), /self.signed|unable to verify|unable to get/i],
      [stage.pool({ connectionString: plain.url, ssl: { ca } }), /does not support SSL/],
    ] as const) {
      const error = await stage
        .election('a', client)
        .campaign()
        .catch((e: unknown) => e);
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(String(error)).toMatch(why);
    }
    for (const client of [stage.pool({ ssl: { ca } }), stage.sql({ ssl: { ca } })]) {
      const term = await stage.lead(stage.election('a', client));
      await term[Symbol.asyncDispose]();
    }
  });

  test.concurrent('behind a pooler of transactions: elections go on by polling, and it is said', async (context) => {
    const { expect } = context;
    await using pooler = await startPgBouncer({ server });
    const stage = new Stage(context, pooler.url);
    // A pooler refuses parameters that it does not know.
    const sql = stage.sql({ prepare: false, connection: {} });
    for (const client of [stage.pool(), sql]) {
      for (const listen of [true, false]) {
        stage.troubles.length = 0;
        const first = await stage.lead(stage.election('a', client, { listen }));
        const following = stage.election('b', client, { listen }).campaign();
        if (listen) {
          await until('it is said', () =>
            stage.troubles.some((text) => text.includes('a pooler stands between')),
          );
        }
        await first[Symbol.asyncDispose]();
        await (await following)[Symbol.asyncDispose]();
        if (!listen) expect(stage.troubles.join('\n')).not.toContain('pooler');
      }
      expect((await examinePostgres(client)).noWakeUps).toBe('a pooler stands between');
    }
    stage.expectNoOverlap();
  });

  test.concurrent('with other parsers for types and names works as well', async (context) => {
    const stage = new Stage(context, server.url);
    const types = { getTypeParser: () => () => 'nonsense' } as unknown as pg.CustomTypesConfig;
    const sql = stage.sql({
      transform: { ...postgresJs.camel, value: { from: () => 'nonsense' } },
      types: { text: { to: 25, from: [25], serialize: String, parse: () => 'nonsense' } },
    } as object);
    for (const client of [stage.pool({ types }), stage.pool({ binary: true } as object), sql]) {
      const first = await stage.lead(stage.election('a', client));
      const following = stage.election('b', client).campaign();
      await first[Symbol.asyncDispose]();
      await (await following)[Symbol.asyncDispose]();
    }
    stage.expectNoOverlap();
  });
});
