/** Elections on Leases of Kubernetes, also those that Go controllers hold already. */
import type { Backend } from '../../core/contest.ts';
import { leaseBackend } from '../../mechanisms/lease/backend.ts';
import { apiOf } from './api-of.ts';
import type { KubeConfigLike, KubernetesApi } from './client.ts';
import { Refusals } from './errors.ts';
import { leaseLister } from './lister.ts';
import type { KubernetesGuard, KubernetesOptions } from './options.ts';
import { checkNamespace, checkOptions, leaseNameOf, partNameOf } from './options.ts';
import { labelOf, readAllLeases, shardsOf } from './read-all.ts';
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
export type { Verb } from './errors.ts';
export { type HealthzOptions, type LeaderHealthz, leaderHealthz } from './healthz.ts';
export { type FromKubeConfigOptions, fromKubeConfig } from './kube-config.ts';
export { recordAnnotation, specAnnotation, tokenAnnotation } from './lease-format.ts';
export type { KubernetesGuard, KubernetesOptions } from './options.ts';
export { type MissingRightsOptions, missingRights, type SchemaOptions, schema } from './schema.ts';
export { type KubernetesObject, type WithTokenOptions, withToken } from './with-token.ts';

/**
 * A backend that holds elections on Leases. One client serves many elections.
 * @param client `inCluster()`, `apiServer()`, `fromKubeConfig()`, or a `KubeConfig` of
 * `@kubernetes/client-node`
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
  const shared = { api, namespace, refusals, watches };
  return leaseBackend<KubernetesGuard>({
    kind: 'kubernetes',
    description: `Leases in the namespace "${namespace}" of ${api.url}`,
    openStore: (scope) => new KubernetesStore(shared, scope, leaseNameOf(scope.election, options)),
    leases: {
      open: (scope) => {
        const { election } = scope;
        const name = partNameOf(election, options);
        return new KubernetesStore(shared, scope, name, labelOf(election));
      },
      readAll: readAllLeases(shared),
      shards: shardsOf(shared),
    },
    list: leaseLister({
      ...{ api, namespace, refusals },
      leaseNameOf: (election) => leaseNameOf(election, options),
    }),
    guard: (scope, _store, token) => ({
      token,
      namespace,
      leaseName: leaseNameOf(scope.election, options),
    }),
  });
}
