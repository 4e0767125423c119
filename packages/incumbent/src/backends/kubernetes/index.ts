/** Elections on Leases of Kubernetes, also those that Go controllers hold already. */
import { describeValue } from '../../candidate.ts';
import type { Backend } from '../../contest.ts';
import { InvalidOptionError } from '../../errors.ts';
import { leaseBackend } from '../../lease/backend.ts';
import { fromClientNode } from './access.ts';
import type { KubeConfigLike, KubernetesApi } from './client.ts';
import { Refusals } from './errors.ts';
import type { KubernetesGuard, KubernetesOptions } from './options.ts';
import { checkNamespace, checkOptions, leaseNameOf } from './options.ts';
import { KubernetesStore } from './store.ts';
import { LeaseWatches } from './watches.ts';

export {
  type ApiServerOptions,
  apiServer,
  fromClientNode,
  type InClusterOptions,
  inCluster,
} from './access.ts';
export type {
  ApiRequest,
  ApiResponse,
  ApiWatch,
  KubeConfigLike,
  KubernetesApi,
  WatchEvent,
} from './client.ts';
export { type FromKubeConfigOptions, fromKubeConfig } from './kube-config.ts';
export { recordAnnotation, specAnnotation, tokenAnnotation } from './lease-format.ts';
export type { KubernetesGuard, KubernetesOptions } from './options.ts';

/**
 * @param client `inCluster()`, `apiServer()`, `fromKubeConfig()`, or a `KubeConfig` of
 *   `@kubernetes/client-node`. One client serves many elections
 * @throws InvalidOptionError
 */
export function kubernetes(
  client: KubernetesApi | KubeConfigLike,
  options: KubernetesOptions = {},
): Backend<KubernetesGuard> {
  checkOptions(options);
  const api = apiOf(client);
  const namespace = checkNamespace(options.namespace ?? api.namespace ?? 'default');
  const refusals = new Refusals(api.url, namespace);
  const watches = new LeaseWatches(api, namespace, refusals);
  return leaseBackend<KubernetesGuard>({
    kind: 'kubernetes',
    description: `Leases in the namespace "${namespace}" of ${api.url}`,
    openStore: (scope) =>
      new KubernetesStore(
        { api, namespace, refusals, watches },
        scope,
        leaseNameOf(scope.election, options),
      ),
    guard: (scope, _store, token) => ({
      token,
      namespace,
      leaseName: leaseNameOf(scope.election, options),
    }),
  });
}

function apiOf(client: KubernetesApi | KubeConfigLike): KubernetesApi {
  const given = client as Partial<KubernetesApi & KubeConfigLike> | null | undefined;
  if (typeof given?.request === 'function' && typeof given.watch === 'function') {
    return client as KubernetesApi;
  }
  if (typeof given?.applyToHTTPSOptions === 'function') {
    return fromClientNode(client as KubeConfigLike);
  }
  const isApiClass = typeof (given as { readNamespacedLease?: unknown })?.readNamespacedLease;
  throw new InvalidOptionError(
    isApiClass === 'function'
      ? 'kubernetes() takes the KubeConfig itself, not the CoordinationV1Api made from it: that drops ' +
          'what it does not know of a Lease'
      : `kubernetes() takes inCluster(), apiServer(), fromKubeConfig() or a KubeConfig, not ${describeValue(client)}`,
  );
}
