/** The losses of a server that took over from another one, or was started again. */
import type { PostgresServer } from '@incumbent/servers';
import { startPostgres } from '@incumbent/servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { schema } from '../src/backends/postgres/index.ts';
import { leaseMs, long, missing, Stage } from './support/postgres.ts';

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

/** From now on the present rows count as written by another run of the server. */
const takeOver = "update incumbent_election set life = 'an earlier one'";

/** No leader was told of the change, and the next candidate knows nothing of them. */
async function replaceTable(stage: Stage, change: string): Promise<void> {
  const pool = stage.pool();
  const more = { lease: 6_000 };
  const first = await stage.lead(stage.election('a', pool, {}, more));
  await pool.query(change);
  const next = stage.election('b', stage.pool(), {}, more);
  await next.init();
  const term = await stage.lead(next);
  expect(first.isLeading()).toBe(false);
  expect(term.token).toBeGreaterThan(first.token);
  stage.expectNoOverlap();
  await term[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
}

describe.skipIf(missing !== undefined)('PostgreSQL that may have forgotten', () => {
  test.concurrent('elects nobody beside who led when its table is dropped and made anew, and gives no token again', async (context) => {
    const stage = new Stage(context, await database('dropped'));
    await replaceTable(stage, 'drop table incumbent_election');
  });

  for (const [what, change] of [
    [
      'restored by its definition',
      `drop table incumbent_election; ${schema()};
      insert into incumbent_election select * from backup`,
    ],
    [
      'emptied and filled',
      'truncate incumbent_election; insert into incumbent_election table backup',
    ],
  ] as const) {
    test.concurrent(`elects nobody beside who led when an older table is ${what}`, async (context) => {
      const stage = new Stage(context, await database(what.split(' ')[0]!));
      const pool = stage.pool();
      await stage.lead(stage.election('z', pool)).then((term) => term[Symbol.asyncDispose]());
      await pool.query('create table backup as table incumbent_election');
      await replaceTable(stage, change);
    });
  }

  test.concurrent('begins one lease after somebody looked first, and not when it was prepared', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('prepared'));
    const pool = stage.pool();
    await stage.election('first', pool, {}, long).init();
    const election = stage.election('a', pool);
    const known = "select count(*)::int as known from incumbent_election where name = ''";
    expect((await pool.query(known)).rows).toEqual([{ known: 0 }]);
    await expect(election.campaign({ wait: 500 })).rejects.toMatchObject({ code: 'NOT_ELECTED' });
    expect((await pool.query(known)).rows).toEqual([{ known: 1 }]);
    const term = await stage.lead(election);
    // Every later election is known to be new.
    const other = stage.election('other', pool, {}, { name: `${stage.name}-2`, lease: 60_000 });
    await pool.query(
      "update incumbent_election set written_at = now() - interval '1 h' where name = ''",
    );
    const second = await other.campaign({ wait: 5_000 });
    await second[Symbol.asyncDispose]();
    await term[Symbol.asyncDispose]();
  });

  test.concurrent('is known by the life of the server, not of the row, to candidates that only try', async (context) => {
    const stage = new Stage(context, await database('tried'));
    const pool = stage.pool();
    const first = await stage.lead(stage.election('a', pool));
    await first[Symbol.asyncDispose]();
    await pool.query(takeOver);
    // Any look begins the life.
    await stage.election('looks', pool, {}, long).leader();
    await pool.query(
      "update incumbent_election set written_at = now() - interval '1 h' where name = ''",
    );
    const term = await stage
      .election('tries', stage.pool(), {}, { lease: 60_000 })
      .campaign({ wait: 5_000 });
    await term[Symbol.asyncDispose]();
  });

  test.concurrent('gives no token twice when a row was deleted', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('deleted'));
    const pool = stage.pool();
    const first = await stage.lead(stage.election('a', pool));
    await first[Symbol.asyncDispose]();
    await pool.query('delete from incumbent_election where name = $1', [stage.name]);
    const next = await stage.lead(stage.election('b', stage.pool()));
    expect(next.token).toBeGreaterThan(first.token);
    await next[Symbol.asyncDispose]();
  });

  for (const clock of ['right', 'set back'] as const) {
    test.concurrent(`gives no token in two lives that start from one row (its clock is ${clock})`, async (context) => {
      const { expect } = context;
      const stage = new Stage(context, await database(`lives_${clock.replace(' ', '_')}`));
      const pool = stage.pool();
      const turn = async (id: string) => {
        const term = await stage.lead(stage.election(id, stage.pool()));
        await term[Symbol.asyncDispose]();
        return term.token;
      };
      await turn('a');
      if (clock === 'set back') {
        await pool.query(
          'update incumbent_election set token = token + 1e12, token_floor = token_floor + 1e12',
        );
      }
      await pool.query('create table backup as table incumbent_election');
      const restore = `drop table incumbent_election; ${schema()};
        insert into incumbent_election select * from backup`;
      // Each of them knows nothing of the wins after the backup.
      const tokens: bigint[] = [];
      for (const id of ['b', 'c', 'd']) {
        await pool.query(restore);
        tokens.push(await turn(id));
      }
      // Two of three may be equal if the clock was set back, once in thousands of runs.
      expect(new Set(tokens).size).toBeGreaterThan(clock === 'right' ? 2 : 1);
    });
  }

  test.concurrent('has begun now, if the clock was set back since it began', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('future'));
    const pool = stage.pool();
    await stage.election('looks', pool, {}, long).leader();
    await pool.query(
      "update incumbent_election set written_at = now() + interval '1 h' where name = ''",
    );
    await stage.election('looks', pool, {}, long).leader();
    const { rows } = await pool.query(
      "select written_at <= clock_timestamp() as past from incumbent_election where name = ''",
    );
    expect(rows).toEqual([{ past: true }]);
  });

  test.concurrent('gives no token twice, whichever candidate writes first after it took over', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('floors'));
    const pool = stage.pool();
    const first = await stage.lead(stage.election('a', pool));
    await first[Symbol.asyncDispose]();
    // A term of token 2 is lost here.
    await pool.query(takeOver);
    await stage.election('operator', pool, {}, long).drain('x', new Date(Date.now() + 60_000));
    const term = await stage.lead(stage.election('fresh', stage.pool()));
    expect(term.token).toBeGreaterThan(first.token + 1_000n);
    await term[Symbol.asyncDispose]();
    const next = await stage.lead(stage.election('next', stage.pool()));
    expect(next.token).toBe(term.token + 1n);
    await next[Symbol.asyncDispose]();
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
      const lost = await election.campaign({ wait: 2 * leaseMs }).catch((error: unknown) => error);
      if (kind === 'Client') {
        expect(lost).toMatchObject({ message: expect.stringContaining('in a transaction') });
        await client.query('rollback');
        const term = await stage.lead(election);
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
