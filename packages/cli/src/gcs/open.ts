import { gcs } from 'incumbent/gcs';
import type { OpenStore, StoreNeeds } from '../context.ts';
import type { Machine } from '../url/secrets.ts';
import { connectGcs } from './connect.ts';
import type { GcsLocation } from './url.ts';

/**
 * Makes a client, and makes sure that the store answers.
 * @throws CommandError that names it and the fault; UnusableStoreError
 */
export async function openGcs(
  location: GcsLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<OpenStore> {
  const connection = await connectGcs(location, needs, machine);
  const { bucket, prefix, options } = location;
  const backend = gcs(connection.storage, { bucket, prefix, ...options });
  return {
    url: location.url,
    origin: location.origin,
    backend,
    servers: {
      async examine(examination) {
        const { examineGcs } = await import('../doctor/gcs.ts');
        return examineGcs(connection, backend, examination);
      },
      async scratch(unique, signal) {
        const { scratchOnGcs } = await import('../doctor/gcs.ts');
        return scratchOnGcs(unique, connection, backend, signal);
      },
    },
    close: async () => {},
  };
}
