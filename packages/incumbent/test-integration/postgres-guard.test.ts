import type { PostgresServer } from '@incumbent/servers';
import { startPostgres } from '@incumbent/servers';
import type { Client } from 'pg';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { fenceTrigger } from '../src/backends/postgres/index.ts';
import { drivers, long, missing, oldTable, Stage, until } from './support/postgres.ts';

let server: PostgresServer;

beforeAll(async () => {
  if (missing !== undefined) return;
  server = await startPostgres({ settings: { max_connections: 200 } });
  await server.sql(oldTable);
  await server.sql('create table jobs (id text primary key, state text)');
  await server.sql('create table reports (id text primary key, state text)');
  // Twice: a migration may be run again.
  for (let times = 0; times < 2; times += 1) {
    await server.sql(fenceTrigger({ table: 'reports' }));
  }
});

afterAll(() => server?.close());

/**
 * For a candidate that is kept waiting. It reports that soon, and then leads longer than a busy
 * machine stands still.
 */
const patient = { lease: 6_000 } as const;

/** Runs a statement and says how many rows it has changed. */
type Run = (text: string) => Promise<number>;

function runner(stage: Stage, driver: (typeof drivers)[number]): Run {
  if (driver === 'pg') {
    const pool = stage.pool({ max: 8 });
    return async (text) => (await pool.query(text)).rowCount ?? 0;
  }
  const sql = stage.sql({ max: 8 });
  return async (text) => (await sql.unsafe(text)).count ?? 0;
}

/** True when another session waits for a lock that this client holds. */
async function keepsWaiting(client: Client): Promise<boolean> {
  const { rows } = await client.query(
    'select from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid))',
  );
  return rows.length > 0;
}

describe.skipIf(missing !== undefined)('a guarded write', () => {
  test.concurrent.for(drivers)(
    'is made in its term and not after it: %s',
    async (driver, context) => {
      const { expect } = context;
      const stage = new Stage(context, server.url);
      const [pool, sql] = [stage.pool(), stage.sql()];
      const write = async (state: string, guard: string) => {
        if (driver === 'pg') {
          const text = `update jobs set state = $2 where id = $1 and ${guard}`;
          return (await pool.query(text, [stage.name, state])).rowCount;
        }
        const found = await sql`
        update jobs set state = ${state} where id = ${stage.name} and ${sql.unsafe(guard)}`;
        return found.count;
      };
      await pool.query("insert into jobs values ($1, 'new')", [stage.name]);
      const first = await stage.lead(stage.election("o'br\\ien", pool, {}, long));
      expect(first.guard.token).toBe(first.token);
      expect(await write('by the first', first.guard.sql)).toBe(1);
      await first[Symbol.asyncDispose]();
      expect(await write('late', first.guard.sql)).toBe(0);
      const second = await stage.lead(stage.election('b', pool, {}, long));
      expect(await write('stale', first.guard.sql)).toBe(0);
      expect(await write('by the second', second.guard.sql)).toBe(1);
      await stage.election('operator', pool, {}, long).vacate({ force: true });
      expect(await write('after it was taken away', second.guard.sql)).toBe(0);
      await second[Symbol.asyncDispose]();
      await pool.query('delete from incumbent_election where name = $1', [stage.name]);
      expect(await write('after the record is gone', second.guard.sql)).toBe(0);
    },
  );

  test.concurrent('names elections whatever is in their names', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const pool = stage.pool();
    for (const name of [
      `it's ${stage.name}`,
      `back\\slash' or true -- ${stage.name}`,
      `日本 $1 ${stage.name}`,
    ]) {
      const term = await stage.lead(stage.election('a', pool, {}, { ...long, name }));
      for (const setting of ['on', 'off']) {
        const client = await stage.client();
        await client.query(`set standard_conforming_strings = ${setting}`);
        await client.query('set escape_string_warning = off');
        const { rows } = await client.query(`select ${term.guard.sql} as holds`);
        expect(rows).toEqual([{ holds: true }]);
        const other = term.guard.sql.replace(`token = ${term.token}`, 'token = 999');
        const { rows: none } = await client.query(`select ${other} as holds`);
        expect(none).toEqual([{ holds: false }]);
      }
      await term[Symbol.asyncDispose]();
    }
  });

  test.concurrent.for(drivers)(
    'in an open transaction keeps a newer term waiting, and no renewal: %s',
    async (driver, context) => {
      const { expect } = context;
      const stage = new Stage(context, server.url);
      const pool = stage.pool();
      const run = runner(stage, driver);
      await run(`insert into jobs values ('${stage.name}', 'new')`);
      const first = await stage.lead(stage.election('a', pool, {}, long));
      const writing = await stage.client();
      await writing.query('begin');
      const { rows } = await writing.query(`select ${first.guard.sql} as holds`);
      expect(rows).toEqual([{ holds: true }]);
      await stage.renewed(server, 5);
      expect(first.isLeading()).toBe(true);
      await first[Symbol.asyncDispose]();
      expect((await first.ended).released).toBe(true);
      const following = stage.lead(stage.election('b', stage.pool(), {}, patient));
      await until('it is kept waiting', () =>
        stage.troubles.some((text) => text.includes('a guarded write')),
      );
      // Written under the guard, long after the term: and yet before the newer one.
      await writing.query(`update jobs set state = 'by the first' where id = '${stage.name}'`);
      await writing.query('commit');
      const second = await following;
      expect(
        await run(
          `update jobs set state = 'stale' where id = '${stage.name}' and ${first.guard.sql}`,
        ),
      ).toBe(0);
      expect(
        await run(
          `update jobs set state = 'second' where id = '${stage.name}' and ${second.guard.sql}`,
        ),
      ).toBe(1);
      await second[Symbol.asyncDispose]();
    },
  );

  test.concurrent.for(drivers)(
    'that is under way is never overtaken: %s',
    async (driver, context) => {
      const { expect } = context;
      const stage = new Stage(context, server.url);
      const run = runner(stage, driver);
      const log = `log_${driver}`;
      await server.sql(`create table ${log} (n serial, token bigint)`);
      const brake = await stage.client();
      const key = `hashtext('${stage.name}')`;
      await brake.query(`select pg_advisory_lock(${key})`);
      const first = await stage.lead(stage.election('a', stage.pool(), {}, long));
      // Has seen that it may, and then takes its time.
      const slow = run(`insert into ${log} (token) select ${first.token}
        from pg_advisory_lock_shared(${key}) where ${first.guard.sql}`);
      await until('it is under way', () => keepsWaiting(brake));
      await first[Symbol.asyncDispose]();
      const following = stage.lead(stage.election('b', stage.pool(), {}, patient));
      const write = following.then((term) =>
        run(`insert into ${log} (token) select ${term.token} where ${term.guard.sql}`),
      );
      const waits = until('it is kept waiting', () =>
        stage.troubles.some((text) => text.includes('a guarded write')),
      );
      await Promise.race([waits, write]);
      await brake.query(`select pg_advisory_unlock(${key})`);
      expect(await slow).toBe(1);
      expect(await write).toBe(1);
      // Rows are numbered as they are written.
      expect(await server.sql(`select string_agg(token::text, ',' order by n) from ${log}`)).toBe(
        `${first.token},${(await following).token}`,
      );
      await (await following)[Symbol.asyncDispose]();
    },
  );
});

describe.skipIf(missing !== undefined)('a fence trigger', () => {
  test.concurrent.for(drivers)(
    'refuses stale tokens, and writes that name none: %s',
    async (driver, context) => {
      const { expect } = context;
      const stage = new Stage(context, server.url);
      const run = runner(stage, driver);
      const row = `id = '${stage.name}'`;
      const insert = (columns: string, values: string) =>
        run(`insert into reports (id, state${columns}) values ('${stage.name}', 'new'${values})`);
      await expect(insert('', '')).rejects.toMatchObject({ code: 'LE002' });
      await insert(', fence', ', 5');
      await run(`update reports set state = 'same', fence = 5 where ${row}`);
      await run(`update reports set state = 'newer', fence = 7 where ${row}`);
      await expect(run(`update reports set fence = 6 where ${row}`)).rejects.toMatchObject({
        code: 'LE001',
      });
      await expect(run(`update reports set fence = 6 where ${row}`)).rejects.toThrow(
        'token 6 is stale: the row of reports has been written with token 7',
      );
      for (const unnamed of [
        `update reports set state = 'x' where ${row}`,
        `update reports set fence = null where ${row}`,
        `update reports set fence = -8 where ${row}`,
        `delete from reports where ${row}`,
      ]) {
        await expect(run(unnamed), unnamed).rejects.toMatchObject({ code: 'LE002' });
      }
      // Once for a transaction, for statements that do not name it, such as a delete.
      const client = await stage.client();
      const named = async (token: number, statement: string) => {
        await client.query('begin');
        try {
          await client.query("select set_config('incumbent.token', $1, true)", [token]);
          await client.query(statement);
          await client.query('commit');
        } catch (error) {
          await client.query('rollback');
          throw error;
        }
      };
      await expect(named(6, `update reports set state = 'x' where ${row}`)).rejects.toMatchObject({
        code: 'LE001',
      });
      await expect(named(6, `delete from reports where ${row}`)).rejects.toMatchObject({
        code: 'LE001',
      });
      await named(8, `update reports set state = 'named' where ${row}`);
      expect(await server.sql(`select state, fence from reports where ${row}`)).toBe('named|8');
      await expect(run(`update reports set state = 'x' where ${row}`)).rejects.toMatchObject({
        code: 'LE002',
      });
      await named(8, `delete from reports where ${row}`);
      expect(await server.sql(`select count(*) from reports where ${row}`)).toBe('0');
    },
  );

  test.concurrent('settles a race: a writer that waits for a row that a newer term writes is refused', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const [newer, older] = [await stage.client(), await stage.client()];
    const row = `id = '${stage.name}'`;
    await newer.query(`insert into reports (id, state, fence) values ('${stage.name}', 'new', 1)`);
    await newer.query('begin');
    await newer.query(`update reports set state = 'newer', fence = 2 where ${row}`);
    const late = older.query(`update reports set state = 'older', fence = 1 where ${row}`);
    late.catch(() => {});
    await until('it waits', () => keepsWaiting(newer));
    await newer.query('commit');
    await expect(late).rejects.toMatchObject({ code: 'LE001' });
    expect(await server.sql(`select state, fence from reports where ${row}`)).toBe('newer|2');
  });

  test.concurrent('can be had for any table and column', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const client = await stage.client();
    await client.query('create schema "App"');
    await client.query('create table "App"."Orders$" (id int)');
    await client.query('insert into "App"."Orders$" values (1)');
    await client.query(fenceTrigger({ table: 'App.Orders$', column: 'Token' }));
    // A row from before has no token yet.
    await client.query('update "App"."Orders$" set "Token" = 3');
    await expect(client.query('update "App"."Orders$" set "Token" = 2')).rejects.toMatchObject({
      code: 'LE001',
    });
    const { rows } = await client.query('select * from "App"."Orders$"');
    expect(rows).toEqual([{ id: 1, Token: '3' }]);
  });
});
