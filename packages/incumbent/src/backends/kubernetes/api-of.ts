import { describeValue } from '../../base/candidate.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { fromClientNode } from './access.ts';
import type { KubeConfigLike, KubernetesApi } from './client.ts';

/** @throws InvalidOptionError for a client that leads to no API server */
export function apiOf(client: KubernetesApi | KubeConfigLike): KubernetesApi {
  const given = client as Partial<KubernetesApi & KubeConfigLike> | null | undefined;
  if (typeof given?.request === 'function' && typeof given.watch === 'function') {
    return client as KubernetesApi;
  }
  if (typeof given?.applyToHTTPSOptions === 'function') {
    return fromClientNode(client as KubeConfigLike);
  }
  const { readNamespacedLease } = (given ?? {}) as { readNamespacedLease?: unknown };
  throw new InvalidOptionError(
    typeof readNamespacedLease === 'function'
      ? 'kubernetes() takes the KubeConfig itself, not the CoordinationV1Api made from it: that drops ' +
          'what it does not know of a Lease'
      : 'kubernetes() takes inCluster(), apiServer(), fromKubeConfig() or a KubeConfig of ' +
          `@kubernetes/client-node, not ${describeValue(client)}`,
  );
}
