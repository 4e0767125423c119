import { s3 } from 'incumbent/s3';
import type { OpenStore, StoreNeeds } from '../context.ts';
import type { Machine } from '../url/secrets.ts';
import { connectS3 } from './connect.ts';
import type { S3Location } from './url.ts';

/**
 * Makes a client, and makes sure that the endpoint answers.
 * @throws CommandError that names it and the fault; UnusableStoreError
 */
export async function openS3(
  location: S3Location,
  needs: StoreNeeds,
  machine: Machine,
): Promise<OpenStore> {
  const connection = await connectS3(location, needs, machine);
  const { client, commands } = connection;
  const { bucket, prefix, options } = location;
  const backend = s3(client, { bucket, prefix, commands, ...options });
  return {
    url: location.url,
    origin: location.origin,
    backend,
    servers: {
      async examine(examination) {
        const { examineS3 } = await import('../doctor/s3.ts');
        return examineS3(connection, backend, examination);
      },
      async scratch(unique, signal) {
        const { scratchOnS3 } = await import('../doctor/s3.ts');
        return scratchOnS3(unique, connection, backend, signal);
      },
    },
    close: connection.close,
  };
}
