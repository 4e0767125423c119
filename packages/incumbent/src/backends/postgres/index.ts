/** Elections in a table of PostgreSQL, on the client that a program has already. */
import type { Backend } from '../../core/contest.ts';
import { leaseBackend } from '../../mechanisms/lease/backend.ts';
import { allOf } from '../../mechanisms/lease/read-all.ts';
import type { PostgresClient } from './client.ts';
import type { PostgresGuard } from './guard.ts';
import { guardFor } from './guard.ts';
import { openPostgres } from './open.ts';
import type { PostgresOptions } from './options.ts';
import { PostgresStore } from './store.ts';

export type {
  PgClient,
  PgNotification,
  PgPool,
  PgPoolClient,
  PgQuery,
  PostgresClient,
  PostgresSql,
} from './client.ts';
export { examinePostgres, type PostgresExamination } from './examine.ts';
export { type FenceTriggerOptions, fenceTrigger, type PostgresGuard } from './guard.ts';
export type { PostgresOptions } from './options.ts';
export { schema } from './schema.ts';

/**
 * A backend that holds elections in a table. One client serves many elections. It is the caller's
 * own, and is not closed here.
 * @param client a Pool or a connected Client of `pg`, or the `sql` of `postgres`. A Pool needs two
 * connections, because one listens. A Client does not connect again, so a leader on it loses the
 * term with its connection
 * @throws InvalidOptionError
 */
export function postgres(
  client: PostgresClient,
  options: PostgresOptions = {},
): Backend<PostgresGuard> {
  const { table, description, openStore, lister } = openPostgres(client, options);
  return leaseBackend<PostgresGuard>({
    kind: 'postgres',
    description,
    openStore,
    list: lister,
    leases: {
      readAll: async (stores, signal) =>
        PostgresStore.readAll(allOf(PostgresStore, stores), signal),
    },
    guard: (scope, _store, token) => guardFor(table, scope.election, token),
  });
}
