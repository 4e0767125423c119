import { postgres } from 'incumbent/postgres';
import type { OpenStore, StoreNeeds } from '../context.ts';
import type { Machine } from '../url/secrets.ts';
import { connectPostgres } from './connect.ts';
import { isTableMissing, prepareTable, tableOf } from './table.ts';
import type { PostgresLocation } from './url.ts';

/**
 * Connects, and makes sure that the server answers.
 * @throws CommandError that names the hosts and the fault; UnusableStoreError
 */
export async function openPostgres(
  location: PostgresLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<OpenStore> {
  const connections = await connectPostgres(location, needs, machine);
  const { pool, close } = connections;
  return {
    url: location.url,
    origin: location.origin,
    backend: postgres(pool, location.options),
    prepare: (signal) => prepareTable(connections, signal),
    servers: {
      async missingPlace() {
        // Any other error comes again when the command asks the election, and is reported there.
        const isMissing = await isTableMissing(connections).catch(() => false);
        return isMissing ? `table "${tableOf(location).name}"` : undefined;
      },
      async examine({ timing, signal }) {
        const { examinePostgresStore } = await import('../doctor/postgres.ts');
        return examinePostgresStore(connections, timing, signal);
      },
      async scratch(unique) {
        const { scratchOnPostgres } = await import('../doctor/postgres.ts');
        return scratchOnPostgres(unique, connections);
      },
    },
    close,
  };
}
