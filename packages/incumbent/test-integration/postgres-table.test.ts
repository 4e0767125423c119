import type { PostgresServer } from '@incumbent/servers';
import { startPostgres } from '@incumbent/servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { schema } from '../src/backends/postgres/index.ts';
import { openPostgres } from '../src/backends/postgres/open.ts';
import { RecordDamagedError, RecordTooNewError, StoreUnsuitableError } from '../src/base/errors.ts';
import { encodeLeaseRecord } from '../src/record/lease-record.ts';
import { vacantRecord } from '../test/support/vacant-record.ts';
import { long, missing, oldTable, Stage, scopeOf, until } from './support/postgres.ts';

const never = new AbortController().signal;
let server: PostgresServer;

/** A database of its own, for what changes tables and roles. */
async function database(name: string): Promise<string> {
  await server.sql(`create database ${name}`);
  return server.url.replace(/postgres$/, name);
}

beforeAll(async () => {
  if (missing !== undefined) return;
  server = await startPostgres();
  await server.sql(oldTable);
});

afterAll(() => server?.close());

describe.skipIf(missing !== undefined).concurrent('a table that cannot be used', () => {
  test.concurrent('is missing: how to make it is said, and init makes it', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('without_table'));
    for (const client of [stage.pool(), await stage.client(), stage.sql()]) {
      const error = await stage
        .election('a', client)
        .campaign()
        .catch((e: unknown) => e);
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(String(error)).toContain('election.init()');
      expect(String(error)).toContain('incumbent schema postgres');
    }
    const elections = [stage.pool(), stage.sql(), stage.pool()].map((client, index) =>
      stage.election(`${index}`, client),
    );
    await Promise.all(elections.map((election) => election.init()));
    const term = await stage.lead(elections[0]!);
    await term[Symbol.asyncDispose]();
  });

  test.concurrent("is made by the first use, with init: 'auto'", async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('made_by_use'));
    const clients = [stage.pool(), stage.sql(), stage.pool()];
    const views = await Promise.all(
      clients.map((client, index) =>
        stage.election(`${index}`, client, {}, { ...long, init: 'auto' }).leader(),
      ),
    );
    expect(views.map(({ state }) => state)).toEqual(['vacant', 'vacant', 'vacant']);
    const election = stage.election('a', stage.pool(), {}, { ...long, init: 'auto' });
    await election.leader();
    // It is not made once more when it goes away later.
    await stage.pool().query('drop table incumbent_election');
    await expect(election.leader()).rejects.toThrow(/it was allowed before/);
  });

  test.concurrent('is missing, and this user may not make it: the way out is said', async (context) => {
    const { expect } = context;
    const url = await database('not_to_be_made');
    const owner = new pg.Client({ connectionString: url });
    await owner.connect();
    const stage = new Stage(context, url.replace('postgres@', 'passer_by@'));
    stage.cleanUp(() => owner.end());
    await owner.query('create role passer_by login; revoke create on schema public from public');
    for (const call of [
      () => stage.election('a', stage.pool(), {}, long).init(),
      () => stage.election('a', stage.sql(), {}, { ...long, init: 'auto' }).campaign(),
    ]) {
      const error = await call().catch((e: unknown) => e);
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(String(error)).toMatch(
        /may not make it: permission denied .* Let the owner of the database run `incumbent schema postgres \| psql`, and then grant select, insert, update on "incumbent_election"/,
      );
    }
  });

  test.concurrent('is not made a second time for a user with another search path', async (context) => {
    const { expect } = context;
    const url = await database('two_paths');
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    const stage = new Stage(context, url.replace('postgres@', 'web@'));
    const other = new Stage(context, url.replace('postgres@', 'cron@'));
    stage.cleanUp(() => admin.end());
    for (const role of ['web', 'cron']) {
      await admin.query(`create role ${role} login; create schema ${role} authorization ${role};
        alter role ${role} in database two_paths set search_path = ${role};
        alter role ${role} set default_transaction_isolation = 'repeatable read'`);
    }
    // A table of something else, which has the same name.
    await admin.query('create schema votes; create table votes.incumbent_election (name text)');
    // Both at once: one of them makes it.
    const lock = "hashtextextended('incumbent', 0)";
    await admin.query(`select pg_advisory_lock(${lock})`);
    const making = Promise.allSettled([
      stage.election('a', stage.pool(), {}, { ...long, init: 'auto' }).leader(),
      other.election('b', other.sql(), {}, { ...long, init: 'auto' }).leader(),
    ]);
    const waiting = "select from pg_locks where locktype = 'advisory' and not granted";
    const inHere =
      'and database = (select oid from pg_database where datname = current_database())';
    await until('both wait', async () => {
      return (await admin.query(`${waiting} ${inHere}`)).rowCount === 2;
    });
    await admin.query(`select pg_advisory_unlock(${lock})`);
    const made = await making;
    expect(made.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const isWebs = made[0].status === 'fulfilled';
    const [first, second] = isWebs ? ['web', 'cron'] : ['cron', 'web'];
    const late = isWebs ? other : stage;
    const name = 'incumbent_election';
    for (const call of [
      () => late.election('a', late.pool(), {}, { ...long, init: 'auto' }).campaign(),
      () => late.election('a', late.sql(), {}, long).init(),
      async () => {
        // Nor for who may make none there.
        await admin.query(`revoke create on schema ${second} from ${second}`);
        await late.election('a', late.pool(), {}, long).init();
      },
    ]) {
      const error = await call().catch((e: unknown) => e);
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(String(error)).toContain(`but there is one in the schema "${first}"`);
      expect(String(error)).toContain(`\`table: '${first}.${name}'\``);
      expect(String(error)).toContain(`\`table: '${second}.${name}'\``);
    }
    // Both ways out: that table, or one that is meant to be another.
    await admin.query(`grant usage on schema ${first} to ${second};
      grant create on schema ${second} to ${second};
      grant select, insert, update on ${first}.${name} to ${second}`);
    const same = late.election('a', late.pool(), { table: `${first}.${name}` }, long);
    await same.init();
    const apart = late.election('b', late.pool(), { table: `${second}.${name}` }, long);
    await apart.init();
    expect([(await same.leader()).state, (await apart.leader()).state]).toEqual([
      'vacant',
      'vacant',
    ]);
  });

  test.concurrent('lies in a schema that is named, and may have another name', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, await database('with_schema'));
    const pool = stage.pool();
    await pool.query('create schema "App"');
    const election = stage.election('a', pool, { table: 'App.Elections' });
    await election.init();
    const term = await stage.lead(election);
    const { rows } = await pool.query(`select token from "App"."Elections" where name <> ''`);
    expect(rows).toEqual([{ token: `${term.token}` }]);
    await term[Symbol.asyncDispose]();
  });

  test.concurrent.for([
    ['no unique names', 'create table incumbent_election as select * from good'],
    [
      'no key with the token',
      'create table incumbent_election (like good including all); ' +
        'alter table incumbent_election drop constraint incumbent_election_name_token_key',
    ],
    ['no record', 'create table incumbent_election (name text primary key, token numeric)'],
    [
      'a record that is JSON',
      'create table incumbent_election (like good including all); ' +
        'alter table incumbent_election alter record type jsonb using null',
    ],
  ] as const)('has another shape: %s', async ([what, sql], context) => {
    const { expect } = context;
    const stage = new Stage(context, await database(what.replaceAll(' ', '_').toLowerCase()));
    const pool = stage.pool();
    await pool.query(`${schema({ table: 'good' })}; ${sql}`);
    const store = openPostgres(pool, { listen: false }).openStore(scopeOf('x'));
    await expect(store.init(never)).rejects.toThrow(StoreUnsuitableError);
    await expect(store.init(never)).rejects.toThrow(/is not one of elections .*incumbent schema/);
    // Without init it is noticed as well, before two rows could be two elections.
    const seen = store
      .read(never)
      .then(({ version }) => store.swap(version, vacantRecord('x', 'n'), never));
    if (what !== 'no key with the token') await expect(seen).rejects.toThrow(StoreUnsuitableError);
  });

  test.concurrent('may not be used by this user: the grant is named', async (context) => {
    const { expect } = context;
    const url = await database('without_rights');
    const stage = new Stage(context, url.replace('postgres@', 'stranger@'));
    const owner = new pg.Client({ connectionString: url });
    await owner.connect();
    stage.cleanUp(() => owner.end());
    await owner.query(`${oldTable}; create role stranger login`);
    for (const client of [stage.pool(), stage.sql()]) {
      const error = await stage
        .election('a', client)
        .campaign()
        .catch((e: unknown) => e);
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(String(error)).toContain('grant select, insert, update on "incumbent_election"');
    }
    // A user that may only read sees the leader.
    await owner.query('grant select on incumbent_election to stranger');
    const watcher = stage.election('watcher', stage.pool(), {}, long);
    expect((await watcher.leader()).state).toBe('vacant');
    await owner.query('grant insert, update on incumbent_election to stranger');
    const term = await stage.lead(stage.election('a', stage.pool(), {}, long));
    // A waiting candidate goes on waiting while the table is taken away.
    const follower = stage.election('b', stage.pool(), { listen: false }, { pollEvery: 100 });
    expect((await follower.leader()).state).toBe('led');
    const waiting = stage.lead(follower);
    let refusal: unknown;
    waiting.catch((error: unknown) => {
      refusal = error;
    });
    await owner.query('revoke select on incumbent_election from stranger');
    await expect(follower.leader()).rejects.toThrow('it was allowed before');
    await owner.query('grant select on incumbent_election to stranger');
    await term[Symbol.asyncDispose]();
    await (await waiting)[Symbol.asyncDispose]();
    expect(refusal).toBeUndefined();
  });

  test.concurrent('has a record that is not ours, which stays as it is', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const pool = stage.pool();
    const foreign = encodeLeaseRecord(vacantRecord('other', 'n'));
    for (const [text, kind] of [
      ['hello', RecordDamagedError],
      ['{"format":99}', RecordTooNewError],
      [foreign, RecordDamagedError],
    ] as const) {
      await pool.query(
        'insert into incumbent_election (name, record, version) values ($1, $2, $3) on conflict (name) do update set record = excluded.record, version = excluded.version',
        [stage.name, text, text.slice(0, 9)],
      );
      await expect(stage.election('a', pool).campaign()).rejects.toThrow(kind);
      const { rows } = await pool.query('select record from incumbent_election where name = $1', [
        stage.name,
      ]);
      expect(rows).toEqual([{ record: text }]);
    }
  });
});
