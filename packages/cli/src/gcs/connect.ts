/** Our client of Google Cloud Storage. */
import { resolve } from 'node:path';
import { gcs } from 'incumbent/gcs';
import type { StoreNeeds } from '../context.ts';
import { UnusableStoreError } from '../unusable.ts';
import { codeOf, isNetworkError, reach, reasonOf, unreachable } from '../url/reach.ts';
import type { Machine } from '../url/secrets.ts';
import type { SdkClient } from './sdk.ts';
import { loadSdk } from './sdk.ts';
import type { GcsLocation } from './url.ts';

export interface GcsConnection {
  readonly storage: SdkClient;
  readonly location: GcsLocation;
}

/** No request waits longer for one answer. */
const requestTimeoutMs = 30_000;

/** @throws CommandError, UnusableStoreError that names the bucket and the reason */
export async function connectGcs(
  location: GcsLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<GcsConnection> {
  const { bucket, prefix, endpoint, project, keyFile, url, origin } = location;
  const { Storage } = loadSdk(machine.cwd);
  const storage = new Storage({
    timeout: requestTimeoutMs,
    retryOptions: { autoRetry: false },
    // Without a name the client goes looking for one, and no object needs it.
    projectId: project ?? machine.env['GOOGLE_CLOUD_PROJECT'] ?? 'unnamed',
    ...(endpoint === undefined ? {} : { apiEndpoint: endpoint }),
    ...(keyFile === undefined ? {} : { keyFilename: resolve(machine.cwd, keyFile) }),
  });
  const { limits = {} } = gcs(storage, { bucket, ...location.options });
  const known = { url, origin, limits };
  const attempt = async () => {
    // Any answer will do here: the library says whether it suits elections.
    await storage
      .bucket(bucket)
      .file(`${prefix}.incumbent`)
      .getMetadata()
      .catch((error: unknown) => {
        if (statusOf(error) === undefined) throw error;
      });
  };
  try {
    await reach(needs, attempt, isNetworkError);
  } catch (error) {
    needs.signal.throwIfAborted();
    const problem = problemOf(error, keyFile);
    if (problem !== undefined) {
      throw new UnusableStoreError('AUTH_FAILED', problem, known, { cause: error });
    }
    throw unreachable(nameOf(location), error, needs, known);
  }
  return { storage, location };
}

/** Undefined: there was no answer. */
export function statusOf(error: unknown): number | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'number' && code >= 100 && code < 600 ? code : undefined;
}

/** Finds out which credentials are missing; undefined: the error has another cause. */
function problemOf(error: unknown, keyFile: string | undefined): string | undefined {
  const said = reasonOf(error);
  if (keyFile !== undefined && (codeOf(error) === 'ENOENT' || !isNetworkError(error))) {
    return `the key-file ${keyFile} cannot be used: ${said}`;
  }
  if (/default credentials|invalid_grant/i.test(said)) {
    return (
      `Google's client finds no credentials (${said}): run \`gcloud auth application-default login\`, ` +
      'set GOOGLE_APPLICATION_CREDENTIALS, or add key-file=/PATH'
    );
  }
  return undefined;
}

export function nameOf({ endpoint, bucket }: GcsLocation): string {
  return `the bucket ${bucket} of Cloud Storage${endpoint === undefined ? '' : ` at ${endpoint}`}`;
}
