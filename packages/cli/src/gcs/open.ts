import { gcs } from 'incumbent/gcs';
import type { OpenStore, StoreNeeds } from '../context.ts';
import { namesBelow } from '../url/bucket.ts';
import type { Machine } from '../url/secrets.ts';
import type { GcsConnection } from './connect.ts';
import { connectGcs } from './connect.ts';
import type { GcsLocation } from './url.ts';

/** Nobody reads more names than this. */
const mostNames = 1_000;

/** Names of elections; undefined: we may not list objects, as elections need not. */
async function electionsIn({
  storage,
  location: { bucket, prefix },
}: GcsConnection): Promise<readonly string[] | undefined> {
  try {
    const options = { prefix, maxResults: mostNames, autoPaginate: false };
    const [files] = await storage.bucket(bucket).getFiles(options);
    return namesBelow(
      prefix,
      files.map(({ name }) => name),
    );
  } catch {
    return undefined;
  }
}

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
    elections: () => electionsIn(connection),
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
