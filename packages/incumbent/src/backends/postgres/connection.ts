import { describeClient } from '../../base/candidate.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { PgClient, PgPool, PostgresClient, PostgresSql } from './client.ts';
import type { Driver } from './driver.ts';
import { PgClientDriver } from './pg-client.ts';
import { PgPoolDriver } from './pg-pool.ts';
import { PostgresJsDriver } from './postgres-js.ts';
import { Renewals } from './renewals.ts';
import { WakeUps } from './wake-ups.ts';

const known = new WeakMap<object, Connection>();

/** Shared by all backends on one client: it is wrapped once, and listens once. */
export class Connection {
  readonly driver: Driver;
  readonly wakeUps: WakeUps;
  readonly renewals: Renewals;
  /** True: it has reached a server that takes writes. */
  hasWorked = false;

  /** @throws InvalidOptionError for a value that is no client */
  static of(client: PostgresClient): Connection {
    const driver = known.get(client)?.driver ?? driverFor(client);
    const connection = known.get(client) ?? new Connection(driver);
    known.set(client, connection);
    return connection;
  }

  private constructor(driver: Driver) {
    this.driver = driver;
    this.wakeUps = new WakeUps(driver);
    this.renewals = new Renewals(driver);
  }
}

function driverFor(client: PostgresClient): Driver {
  const given = (client ?? {}) as Partial<PgPool & PgClient & PostgresSql>;
  const has = (...names: (keyof typeof given | 'release')[]) =>
    names.every((name) => typeof (given as Record<string, unknown>)[name] === 'function');
  if (typeof client === 'function' && has('unsafe', 'listen')) {
    return new PostgresJsDriver(client as PostgresSql);
  }
  if (typeof client === 'function' && has('unsafe')) {
    throw new InvalidOptionError(
      'postgres() takes the `sql` that postgres(…) returns, not that of a transaction or of a ' +
        'reserved connection',
    );
  }
  if (has('connect', 'query', 'on') && typeof given.totalCount === 'number') {
    return new PgPoolDriver(client as PgPool);
  }
  if (has('query', 'on') && (has('connect') || has('release'))) {
    return new PgClientDriver(client as PgClient);
  }
  const hint =
    typeof client === 'string'
      ? ': postgres(new pg.Pool({ connectionString }))'
      : ': postgres(new pg.Pool(…)), or postgres(sql)';
  throw new InvalidOptionError(
    'postgres() takes a Pool or a Client of the package "pg", or the sql of the package ' +
      `"postgres", not ${describeClient(client)}${hint}`,
  );
}
