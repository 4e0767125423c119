import type { Scope } from '../../core/contest.ts';
import type { LeaseLister } from '../../mechanisms/lease/listing.ts';
import type { PostgresClient } from './client.ts';
import { Connection } from './connection.ts';
import { ListeningPostgresStore } from './listening-store.ts';
import { postgresLister } from './lister.ts';
import type { PostgresOptions, Table } from './options.ts';
import { checkOptions } from './options.ts';
import { PostgresStore } from './store.ts';

export interface OpenedPostgres {
  readonly table: Table;
  /** For people. */
  readonly description: string;
  openStore(scope: Scope): PostgresStore;
  readonly lister: LeaseLister;
}

/** @throws InvalidOptionError */
export function openPostgres(client: PostgresClient, options: PostgresOptions): OpenedPostgres {
  const checked = checkOptions(options);
  const connection = Connection.of(client);
  const { table } = checked;
  return {
    table,
    description: `PostgreSQL by ${connection.driver.name}, table ${table.name}`,
    openStore: (scope) =>
      checked.listens
        ? new ListeningPostgresStore(connection, scope, checked)
        : new PostgresStore(connection, scope, checked),
    lister: postgresLister(connection, checked),
  };
}
