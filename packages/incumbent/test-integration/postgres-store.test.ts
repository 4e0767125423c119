import type { PostgresServer } from '@incumbent/servers';
import { startPostgres } from '@incumbent/servers';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { PostgresClient, PostgresOptions } from '../src/backends/postgres/index.ts';
import { examinePostgres, postgres, schema } from '../src/backends/postgres/index.ts';
import { openPostgres } from '../src/backends/postgres/open.ts';
import type { PostgresStore } from '../src/backends/postgres/store.ts';
import type { LeaseRecord } from '../src/record/lease-record.ts';
import type { Backend, LeaseStore } from '../src/testing/index.ts';
import { electionScenarios, leaseStoreScenarios, runConformance } from '../src/testing/index.ts';
import { drivers, leaseMs, missing, oldTable, Stage, scopeOf, until } from './support/postgres.ts';

const never = new AbortController().signal;
let server: PostgresServer;

beforeAll(async () => {
  if (missing !== undefined) return;
  server = await startPostgres({ settings: { max_connections: 200 } });
  await server.sql(oldTable);
});

afterAll(() => server?.close());

function record(election: string, token: bigint, nonce = `nonce ${token}`): LeaseRecord {
  return {
    election,
    token,
    nonce,
    leaseMs,
    ended: false,
    holding: {
      candidate: { id: 'gone', incarnation: 'gone-1', addresses: [], metadata: {} },
      electedAtUnixMs: 1,
      announced: true,
      actors: null,
      revoked: false,
      request: undefined,
    },
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
  };
}

function openStore(
  stage: Stage,
  client: PostgresClient,
  options: PostgresOptions = {},
): PostgresStore {
  const store = openPostgres(client, { listen: false, ...options }).openStore(scopeOf(stage.name));
  stage.cleanUp(() => (store as LeaseStore).close?.());
  return store;
}

/** A swap without competition. */
async function put(store: LeaseStore, next: LeaseRecord): Promise<void> {
  const { version } = await store.read(never);
  const { outcome } = await store.swap(version, next, never);
  if (outcome !== 'ok') throw new Error('a swap without competition conflicted');
}

describe.skipIf(missing !== undefined)('a record in PostgreSQL', () => {
  const levels = ['repeatable read', 'serializable'] as const;
  const combinations = levels.flatMap((level) => drivers.map((driver) => [level, driver] as const));
  test.concurrent.for(combinations)(
    'is won by one also where transactions are %s (%s)',
    async ([level, driver], context) => {
      const { expect } = context;
      // Alone: a serializable transaction may also fail because of others in the same table.
      const database = `${level.replace(' ', '_')}_${driver}`;
      await server.sql(`create database ${database}`);
      const stage = new Stage(context, server.url.replace(/postgres$/, database));
      const client =
        driver === 'pg'
          ? stage.pool({ options: `-c default_transaction_isolation=${level.replace(' ', '\\ ')}` })
          : stage.sql({ connection: { default_transaction_isolation: level } });
      await openPostgres(client, {}).openStore(scopeOf('any')).init(never);
      const races = leaseStoreScenarios.filter(({ name }) => /at the same time/.test(name));
      for (const scenario of races) {
        const [result] = await runConformance<LeaseStore>([scenario], {
          open: (name) => openPostgres(client, {}).openStore(scopeOf(name)),
          prefix: stage.name,
        });
        expect(result?.reason).toBeUndefined();
      }
      const [result] = await runConformance<Backend>(electionScenarios.slice(0, 1), {
        open: () => postgres(client, { clockStep: 0 }),
        capabilities: { hints: true, lists: true },
        // Counts terms: none may be lost because the machine is busy.
        leaseMs: 5_000,
        prefix: stage.name,
      });
      expect(result?.reason).toBeUndefined();
    },
  );

  test.concurrent('survives a crash of the server although the session does not wait for its disk', async (context) => {
    const { expect } = context;
    // Nothing is written by itself for ten seconds.
    const settings = { synchronous_commit: 'off', wal_writer_delay: '10s', bgwriter_delay: '10s' };
    await using crashing = await startPostgres({ settings });
    const stage = new Stage(context, crashing.url);
    await crashing.sql(`${schema()}; checkpoint`);
    await put(openStore(stage, stage.pool()), record(stage.name, 7n));
    await crashing.kill();
    await crashing.start();
    const seen = await openStore(stage, stage.pool()).read(never);
    expect(seen.record?.token).toBe(7n);
  });

  test.concurrent('is announced when a candidate waits for the change, and not when it is renewed', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const heard: string[] = [];
    const listener = await stage.client();
    await listener.query('listen incumbent');
    listener.on('notification', ({ payload = '' }) => {
      if (payload.includes(stage.name)) heard.push(payload);
    });
    const store = openStore(stage, stage.pool());
    const announced = record(stage.name, 1n);
    await put(store, announced);
    for (let times = 0; times < 5; times += 1)
      await put(store, { ...announced, nonce: `${times}` });
    const asked = { kind: 'vacate', nonce: 'n' } as const;
    await put(store, { ...announced, holding: { ...announced.holding!, request: asked } });
    await until('all are heard', async () => {
      await listener.query('select 1');
      return heard.length >= 2;
    });
    expect(heard).toEqual(Array(2).fill(`incumbent_election/${stage.name}`));
  });

  test.concurrent('that somebody else has locked is not waited for longer than for an answer', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const store = openStore(stage, stage.pool());
    await put(store, record(stage.name, 1n));
    const other = await stage.client();
    await other.query('begin');
    await other.query('select from incumbent_election where name = $1 for update', [stage.name]);
    const { version } = await store.read(never);
    await expect(store.swap(version, record(stage.name, 2n), never)).rejects.toThrow(
      /another transaction holds the row/,
    );
    const waiting = `select count(*) from pg_locks where not granted
      and pid in (select pid from pg_stat_activity where query like '%${stage.name}%')`;
    expect(await server.sql(waiting)).toBe('0');
    await other.query('rollback');
    expect((await store.swap(version, record(stage.name, 2n), never)).outcome).toBe('ok');
  });

  test.concurrent('has an age by the server’s clock, unless it is switched off', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const pool = stage.pool();
    await put(openStore(stage, pool), record(stage.name, 1n));
    await pool.query(
      "update incumbent_election set written_at = written_at - interval '1 hour' where name = $1",
      [stage.name],
    );
    const told = await openStore(stage, pool).read(never);
    expect(told.ageMs).toBeGreaterThanOrEqual(3_600_000);
    expect(told.ageMs).toBeLessThan(3_700_000);
    expect(await openStore(stage, pool, { age: 'off' }).read(never)).not.toHaveProperty('ageMs');
    // Of a run of the server that is over, perhaps with newer writes, no age is told.
    await pool.query("update incumbent_election set life = 'an earlier one' where name = $1", [
      stage.name,
    ]);
    const later = await openStore(stage, pool).read(never);
    expect(later).not.toHaveProperty('ageMs');
    expect(later.life).toBe(told.life);
  });

  test.concurrent('of a leader that died long ago is no reason to wait; without ages it is', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    const pool = stage.pool();
    const dead = record(stage.name, 1n);
    await put(openStore(stage, pool), { ...dead, leaseMs: 60_000 });
    await pool.query(
      "update incumbent_election set written_at = written_at - interval '1 hour' where name = $1",
      [stage.name],
    );
    const blind = stage.election('blind', pool, { age: 'off' });
    await expect(blind.campaign({ wait: 1_000 })).rejects.toThrow('was not won within');
    const term = await stage.lead(stage.election('a', pool));
    expect(term.predecessor?.token).toBe(1n);
    await term[Symbol.asyncDispose]();
  });

  test.concurrent('is not taken away when the server’s clock is set forward by less than was declared', async (context) => {
    const { expect } = context;
    await server.sql('create database stepping');
    const url = server.url.replace(/postgres$/, 'stepping');
    const stepping = new Stage(context, url);
    const pool = stepping.pool();
    // A reader finds every record older than it is, as after a step of the clock.
    await pool.query(`${schema()};
      create function step() returns trigger language plpgsql as $$
      begin new.written_at := new.written_at - interval '4.9 s'; return new; end $$;
      create trigger step before insert or update of written_at on incumbent_election
        for each row execute function step()`);
    const term = await stepping.lead(
      stepping.election('a', pool, { clockStep: '5s' }, { lease: 4_000 }),
    );
    const second = stepping.election('b', stepping.pool(), { clockStep: '5s' }, { lease: 4_000 });
    // A busy machine may end the first term: then, and only then, there is a second.
    const next = await second.campaign({ wait: 5_000 }).catch(() => undefined);
    if (next === undefined) expect(term.isLeading()).toBe(true);
    else stepping.watch.add(next, () => Number.POSITIVE_INFINITY);
    stepping.expectNoOverlap();
    await next?.[Symbol.asyncDispose]();
    await term[Symbol.asyncDispose]();
  });

  test.concurrent('can be examined with its server by an operator', async (context) => {
    const { expect } = context;
    const stage = new Stage(context, server.url);
    for (const client of [stage.pool(), stage.sql(), await stage.client()]) {
      const before = Date.now();
      const seen = await examinePostgres(client);
      expect(seen).toMatchObject({
        inRecovery: false,
        noWakeUps: undefined,
        tableExists: true,
        tableProblem: undefined,
        otherSchemas: [],
        missingPrivileges: [],
        fsync: false,
        fullPageWrites: true,
        synchronousCommit: 'on',
        synchronousStandbyNames: '',
        replicas: 0,
      });
      expect(seen.serverVersion).toMatch(/^\d+\.\d+/);
      expect(seen.serverUnixMs).toBeGreaterThan(before - 1_000);
      expect((await examinePostgres(client, { table: 'missing' })).tableExists).toBe(false);
      expect((await examinePostgres(client, { table: 'pg_class' })).tableProblem).toBeDefined();
    }
  });
});
