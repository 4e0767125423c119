/** What a server may have lost that took over from another one, or was started again. */
import type { PostgresServer } from '@incumbent/servers';
import { startPostgres } from '@incumbent/servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { postgres, schema } from '../src/backends/postgres/index.ts';
import { createElection } from '../src/index.ts';
import { missing, Stage, until } from './support/postgres.ts';

let server: PostgresServer;

beforeAll(async () => {
  if (missing === undefined) server = await startPostgres();
});

afterAll(() => server?.close());

/** A database with a table of its own. */
async function database(name: string): Promise<string> {
  await server.sql(`create database ${name}`);
  const pool = new pg.Pool({ connectionString: server.url.replace(/postgres$/, name) });
  await pool.query(schema());
  await pool.end();
  return server.url.replace(/postgres$/, name);
}

/** From now on what is there was written by another run of the server. */
const takeOver = "update incumbent_election set server_start = server_start - interval '1 s'";

describe.skipIf(missing !== undefined)('PostgreSQL that may have forgotten', () => {
  test.concurrent('makes a new election wait one lease if it is not known to be new', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('without_row'));
    const pool = stage.pool();
    // On a server that has made the table itself nobody waits.
    const before = createElection({ name: 'before', backend: postgres(pool), lease: 60_000 });
    stage.cleanUp(() => before.close());
    await (await before.campaign({ wait: 0 }))[Symbol.asyncDispose]();
    await pool.query(takeOver);
    const election = stage.election('a', pool);
    await expect(election.campaign({ wait: 0 })).rejects.toMatchObject({ code: 'NOT_ELECTED' });
    const term = await stage.lead(election);
    // A row that is lost may have had terms.
    expect(term.token).toBe(1_001n);
    await term[Symbol.asyncDispose]();
    // That the server lost nothing since then is known to those who come later.
    const { rows } = await pool.query(
      "select server_start = pg_postmaster_start_time() as is_known from incumbent_election where name = ''",
    );
    expect(rows).toEqual([{ is_known: true }]);
  });

  test.concurrent('gives no token twice, whoever writes first after it took over', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('floors'));
    const pool = stage.pool();
    const first = await stage.lead(stage.election('a', pool));
    await first[Symbol.asyncDispose]();
    // A term of token 2 is lost here.
    await pool.query(takeOver);
    await stage.election('operator', pool).drain('x', new Date(Date.now() + 60_000));
    const term = await stage.lead(stage.election('fresh', stage.pool()));
    expect(term.token).toBeGreaterThan(1_000n);
    await term[Symbol.asyncDispose]();
    const next = await stage.lead(stage.election('next', stage.pool()));
    expect(next.token).toBe(term.token + 1n);
    await next[Symbol.asyncDispose]();
  });

  test.concurrent('gives no token twice where only candidates have made the row', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('listed_only'));
    const pool = stage.pool();
    await pool.query(takeOver);
    const listed = stage.election('listed', pool);
    const waiting = listed.campaign();
    waiting.catch(() => {});
    await until('it is listed', async () => (await listed.candidates()).length === 1);
    await listed.close();
    await pool.query(takeOver);
    const term = await stage.lead(stage.election('fresh', stage.pool()));
    expect(term.token).toBeGreaterThan(1_000n);
    await term[Symbol.asyncDispose]();
  });
});

describe.skipIf(missing !== undefined)('a connection in a transaction of the program', () => {
  for (const kind of ['Client', 'Pool'] as const) {
    test.concurrent(`of a ${kind} wins nothing that may be rolled back`, async (context) => {
      const { expect } = context;
      const stage = new Stage(context, await database(`in_transaction_${kind.toLowerCase()}`));
      const client = kind === 'Pool' ? stage.pool({ max: 1 }) : await stage.client();
      // Released, or simply gone on with, in the middle of it.
      await client.query('begin');
      const election = stage.election('a', client);
      const lost = await election.campaign({ wait: 2_000 }).catch((error: unknown) => error);
      if (kind === 'Client') {
        expect(lost).toMatchObject({ message: expect.stringContaining('in a transaction') });
        await client.query('rollback');
        const term = await stage.lead(election);
        expect(term.token).toBe(1n);
        await term[Symbol.asyncDispose]();
      } else {
        // The Pool has thrown that connection away.
        const term = lost as Awaited<ReturnType<typeof stage.lead>>;
        const { rows } = await stage
          .pool()
          .query('select token from incumbent_election where token > 0');
        expect(rows).toEqual([{ token: `${term.token}` }]);
        await term[Symbol.asyncDispose]();
      }
    });
  }
});
