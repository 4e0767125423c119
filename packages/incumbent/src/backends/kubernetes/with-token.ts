import { RefusedError, StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import { apiOf } from './api-of.ts';
import type { ApiResponse, KubeConfigLike, KubernetesApi } from './client.ts';
import { asStatus } from './client.ts';
import { tokenAnnotation } from './lease-format.ts';

/** An object of the cluster, as far as `withToken` looks into it. */
export interface KubernetesObject {
  readonly metadata: {
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

/** The options of `withToken`. */
export interface WithTokenOptions {
  /** The annotation that keeps the token on the object. Default `incumbent.dev/token`. */
  readonly annotation?: string;
  readonly signal?: AbortSignal;
}

/** Other programs write the object too. Beyond that one of them writes it all the time. */
const mostTries = 10;

/**
 * Changes an object of the cluster as the leader of a term. The token goes into an annotation of
 * the object, and the write is conditional on the version that was read. Once a newer term has
 * written the object this way, an older one cannot any more. This holds for this object alone, and
 * only if all leaders write it this way.
 *
 * @param token the token of the term (`term.token`)
 * @param path the path of the object, from `/api` or `/apis` on
 * @param change makes the new object from the present one. Called again when others
 * wrote in between
 * @returns the object as it was written
 * @throws RefusedError when a newer term has written it: stop then
 * @throws StoreUnavailableError when it is unknown whether it was written
 * @throws StoreUnsuitableError when the server refuses the write
 */
export async function withToken<T extends KubernetesObject>(
  client: KubernetesApi | KubeConfigLike,
  token: bigint,
  path: string,
  change: (object: T) => T,
  options: WithTokenOptions = {},
): Promise<T> {
  const api = apiOf(client);
  const { annotation = tokenAnnotation } = options;
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  for (let tries = 0; tries < mostTries; tries += 1) {
    const present = objectIn<T>(await api.request({ method: 'GET', path, ...signal }), path);
    const newest = present.metadata.annotations?.[annotation] ?? '0';
    if (!/^\d+$/.test(newest)) {
      throw new StoreUnsuitableError(
        `the annotation ${annotation} of ${path} holds no token but "${newest.slice(0, 40)}"`,
      );
    }
    if (BigInt(newest) > token) {
      throw new RefusedError(
        `${path} was written by term ${newest}, which is newer than term ${token}: stop`,
      );
    }
    const next = change(present);
    const metadata = {
      ...next.metadata,
      // A PUT to a deleted object makes some kinds anew (a Lease, a Role …), whatever its version.
      // Then nothing would be left of a newer token. With the uid it is a conflict.
      uid: present.metadata.uid,
      resourceVersion: present.metadata.resourceVersion,
      annotations: { ...next.metadata.annotations, [annotation]: token.toString() },
    };
    const body = { ...next, metadata };
    const response = await api.request({ method: 'PUT', path, body, ...signal });
    if (response.status !== 409) return objectIn<T>(response, path);
  }
  throw new StoreUnavailableError(
    `${path} was not written: in ${mostTries} attempts somebody else was first each time`,
  );
}

function objectIn<T>({ status, body, text }: ApiResponse, path: string): T {
  if ((status === 200 || status === 201) && body !== undefined) return body as T;
  const message = asStatus(body)?.message ?? text.slice(0, 200);
  const what = `the API server refused ${path} (${status}): ${message}`;
  if (status >= 500 || status === 429) throw new StoreUnavailableError(what);
  throw new StoreUnsuitableError(what);
}
