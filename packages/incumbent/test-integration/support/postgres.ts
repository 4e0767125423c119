/** Clients of both packages and elections on PostgreSQL, for one test. */
import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { PostgresServer } from '@incumbent/servers';
import { pgBouncerAvailable, postgresAvailable } from '@incumbent/servers';
import pg from 'pg';
import postgresJs from 'postgres';
import { expect } from 'vitest';
import type {
  PostgresClient,
  PostgresGuard,
  PostgresOptions,
} from '../../src/backends/postgres/index.ts';
import { postgres, schema } from '../../src/backends/postgres/index.ts';
import { checkTable } from '../../src/backends/postgres/options.ts';
import { statementsFor } from '../../src/backends/postgres/statements.ts';
import { systemClock } from '../../src/base/clock.ts';
import { resolveTiming } from '../../src/base/timing.ts';
import type { Scope } from '../../src/core/contest.ts';
import type { Election } from '../../src/core/election.ts';
import { createElection } from '../../src/core/election.ts';
import type { ElectionOptions } from '../../src/core/options.ts';
import type { Term } from '../../src/core/term.ts';
import { BeliefWatch } from './belief-watch.ts';

/** Why no server can be started. In CI that is a failure. */
export const missing: string | undefined = postgresAvailable() ?? pgBouncerAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

export const drivers = ['pg', 'postgres'] as const;
export type DriverName = (typeof drivers)[number];

/**
 * `postgres` 3.4.9 sends small messages in the next turn of the event loop. If a connection
 * closes in between, that connection never sends again. The server then waits for its first
 * message for a minute: elections starve, and a server does not stop. A first message of more
 * than 1 KiB is sent at once.
 */
export const sentAtOnce: { readonly 'incumbent.padding': string } = {
  'incumbent.padding': '.'.repeat(1_024),
};

export interface OpenClient {
  readonly client: PostgresClient;
  close(): Promise<void>;
}

export function openClient(driver: DriverName, url: string, max = 10): OpenClient {
  if (driver === 'pg') {
    const pool = new pg.Pool({ connectionString: url, max });
    return { client: pool, close: () => pool.end() };
  }
  const options = { max, fetch_types: false, onnotice: () => {}, connection: sentAtOnce };
  const sql = postgresJs(url, options);
  return { client: sql, close: () => sql.end({ timeout: 1 }) };
}

/** The scope that a backend hands to a store. */
export function scopeOf(election: string, more: Partial<Scope> = {}): Scope {
  return {
    election,
    clock: systemClock,
    timing: resolveTiming({ lease: 1_500 }),
    random: Math.random,
    uniqueId: randomUUID,
    onTrouble: () => {},
    ...more,
  };
}

export const leaseMs = 4_000;

/**
 * SQL that makes the table, and says that its life is known for an hour. Then no candidate
 * waits for it.
 */
export const oldTable: string = `${schema()};
${statementsFor(checkTable('incumbent_election')).beginLife};
update incumbent_election set written_at = written_at - interval '1 h' where name = ''`;

/** For terms that must outlive anything that a busy machine does to their renewals. */
export const long = {
  lease: 20_000,
  renewEvery: 200,
  retryBackoff: 100,
  operationTimeout: 1_500,
} as const;

/** The part of a test's context that a stage needs. */
interface TestEnd {
  onTestFinished(cleanUp: () => Promise<void>): void;
}

type MoreOptions = Partial<ElectionOptions<PostgresGuard>>;

/** All that one test opens, and a watch over all who lead in it. Ends with the test. */
export class Stage {
  readonly name: string = `jobs-${randomUUID()}`;
  readonly url: string;
  readonly watch: BeliefWatch = new BeliefWatch(this.name);
  /** The troubles of this stage's elections, as diagnostics report them. */
  readonly troubles: string[] = [];
  readonly #cleanUps: (() => unknown)[] = [];

  constructor(end: TestEnd, url: string) {
    this.url = url;
    const note = (message: unknown) => {
      const { election, what, error } = message as {
        readonly [key in 'election' | 'what' | 'error']: unknown;
      };
      if (election === this.name) this.troubles.push(`${what}: ${error}`);
    };
    subscribe('incumbent:trouble', note);
    end.onTestFinished(async () => {
      this.watch.stop();
      unsubscribe('incumbent:trouble', note);
      for (const cleanUp of this.#cleanUps.reverse()) await cleanUp();
    });
  }

  /** Called when the test is over, the last one first. */
  cleanUp(action: () => unknown): void {
    this.#cleanUps.push(action);
  }

  pool(options: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString: this.url, max: 4, ...options });
    // Of some the test has ended it.
    this.cleanUp(() => (pool.ending ? undefined : pool.end()));
    return pool;
  }

  async client(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    this.cleanUp(() => client.end());
    return client;
  }

  sql(options: postgresJs.Options<Record<never, never>> = {}): postgresJs.Sql {
    // Without fetch_types: its driver asks for types by itself, and hears of no failure of that.
    const sql = postgresJs(this.url, {
      max: 4,
      fetch_types: false,
      onnotice: () => {},
      connection: sentAtOnce,
      ...options,
    });
    this.cleanUp(() => sql.end({ timeout: 1 }));
    return sql;
  }

  election(
    id: string,
    client: PostgresClient,
    options: PostgresOptions = {},
    more: MoreOptions = {},
  ): Election<PostgresGuard> {
    const election = createElection({
      name: this.name,
      // The clock of this machine is not set while a test runs.
      backend: postgres(client, options.age === 'off' ? options : { clockStep: 0, ...options }),
      lease: leaseMs,
      candidate: { id },
      ...more,
    });
    this.cleanUp(() => election.close());
    return election;
  }

  /** Campaigns, and watches the term. */
  async lead(election: Election<PostgresGuard>): Promise<Term<PostgresGuard>> {
    const term = await election.campaign();
    this.watch.add(term, () => Number.POSITIVE_INFINITY);
    return term;
  }

  /** Waits until the record has been written so many times more. */
  async renewed(server: PostgresServer, times: number): Promise<void> {
    const written = `select version from incumbent_election where name = '${this.name}'`;
    for (let renewals = 0; renewals < times; renewals += 1) {
      const version = await server.sql(written);
      await until('it is renewed', async () => (await server.sql(written)) !== version);
    }
  }

  expectNoOverlap(): void {
    this.watch.look();
    expect(this.watch.violations).toEqual([]);
  }
}

/** Asks until the answer is true. The bound only turns a hang into a failure. */
export async function until(what: string, ask: () => unknown): Promise<void> {
  const deadlineMs = performance.now() + 120_000;
  while ((await ask()) !== true) {
    if (performance.now() > deadlineMs) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
