import { startPostgres, startPostgresStandby, waitFor } from '@incumbent/servers';
import { describe, test } from 'vitest';
import { StoreUnsuitableError } from '../src/base/errors.ts';
import { drivers, long, missing, oldTable, Stage, until } from './support/postgres.ts';

const patient = { lease: 6_000 };

describe.skipIf(missing !== undefined)('a PostgreSQL', () => {
  test.concurrent('that follows another one is refused, and takes over without its last writes: nobody leads beside who led before', async (context) => {
    const { expect } = context;
    await using primary = await startPostgres();
    await primary.sql(oldTable);
    const stage = new Stage(context, primary.url);
    const more = { lease: 4_000 };
    // A term that both servers know of, and whose end they know of.
    const a = stage.election('a', stage.pool(), {}, more);
    const known = await stage.lead(a);
    await known[Symbol.asyncDispose]();
    await using standby = await startPostgresStandby(primary);

    const behind = new Stage(context, standby.url);
    for (const client of [behind.pool(), behind.sql()]) {
      const election = behind.election('replica', client);
      const error = await election.campaign().catch((e: unknown) => e);
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(String(error)).toContain('read replica');
      expect(String(error)).toContain('connect to the primary');
      // Its data may be old.
      await expect(election.leader()).rejects.toThrow(StoreUnsuitableError);
      await election.close();
    }

    const row = `select version from incumbent_election where name = '${stage.name}'`;
    await waitFor('it has what the primary has', async () => {
      return (await standby.sql(row)) === (await primary.sql(row));
    });
    // From now on it hears nothing.
    await standby.sql("alter system set primary_conninfo = ''");
    await standby.sql('select pg_reload_conf()');
    await waitFor('nobody follows the primary', async () => {
      return (await primary.sql('select count(*) from pg_stat_replication')) === '0';
    });
    const lost = await stage.lead(a);
    await primary.kill();
    await standby.promote();
    const b = behind.election('b', behind.pool(), {}, { ...more, name: stage.name });
    const term = await stage.lead(b);
    expect(lost.isLeading()).toBe(false);
    expect(term.token).toBeGreaterThan(lost.token);
    stage.expectNoOverlap();
    await term[Symbol.asyncDispose]();
    await lost[Symbol.asyncDispose]();
  });

  test.concurrent('that is started again keeps its terms; in recovery it ends them, and those who wait wait on', async (context) => {
    const { expect } = context;
    await using server = await startPostgres();
    await server.sql(oldTable);
    const stages = drivers.map((driver) => {
      const stage = new Stage(context, server.url);
      const client = () => (driver === 'pg' ? stage.pool() : stage.sql({ backoff: 0.1 } as object));
      return { stage, client };
    });

    const kept = await Promise.all(
      stages.map(({ stage, client }) => stage.lead(stage.election('a', client(), {}, long))),
    );
    for (const end of [() => server.stop(), () => server.kill()]) {
      await end();
      await server.start();
    }
    for (const [index, term] of kept.entries()) {
      const renewed = `select written_at > pg_postmaster_start_time()
          from incumbent_election where name = '${stages[index]?.stage.name}'`;
      await until('it is renewed there', async () => (await server.sql(renewed)) === 't');
      expect(term.isLeading()).toBe(true);
      await term[Symbol.asyncDispose]();
      expect((await term.ended).released).toBe(true);
    }

    const started = await Promise.all(
      stages.map(async ({ stage, client }) => {
        // Only the recovery may end it. If b were elected because the machine stood still, no
        // candidate would wait any more.
        const leader = stage.election('a', client(), {}, patient);
        const first = await stage.lead(leader);
        const following = stage.lead(stage.election('b', client(), {}, patient));
        following.catch(() => {});
        await until('b waits', async () => (await leader.candidates()).length === 2);
        return { stage, first, following };
      }),
    );
    await server.restartInRecovery();
    for (const { stage, first } of started) {
      await until('the term is over', () => first.signal.aborted);
      await until('b has noticed', () =>
        stage.troubles.some((text) => text.startsWith('campaigning') && text.includes('recovery')),
      );
    }
    await server.promote();
    for (const { stage, first, following } of started) {
      const second = await following;
      expect(second.token).toBeGreaterThan(first.token);
      stage.expectNoOverlap();
      await first[Symbol.asyncDispose]();
      expect((await first.ended).released).toBe(false);
      await second[Symbol.asyncDispose]();
    }
  });
});
