import { kubernetes } from 'incumbent/kubernetes';
import type { OpenStore, StoreNeeds } from '../context.ts';
import type { Machine } from '../url/secrets.ts';
import type { KubernetesConnection } from './connect.ts';
import { connectKubernetes } from './connect.ts';
import type { KubernetesLocation } from './url.ts';

/**
 * Finds the API server, and makes sure that it answers.
 * @throws CommandError that names it and the fault; UnusableStoreError
 */
export async function openKubernetes(
  location: KubernetesLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<OpenStore> {
  const connection = await connectKubernetes(location, needs, machine);
  const { api, namespace } = connection;
  return {
    url: location.namespace === undefined ? withNamespace(location.url, namespace) : location.url,
    origin: location.origin,
    backend: kubernetes(api, { namespace }),
    elections: (_beside, signal) => leasesIn(connection, signal),
    servers: {
      async examine(examination) {
        const { examineKubernetes } = await import('../doctor/kubernetes.ts');
        return examineKubernetes(connection, examination);
      },
      async scratch(unique, signal) {
        const { scratchOnKubernetes } = await import('../doctor/kubernetes.ts');
        return scratchOnKubernetes(unique, connection, signal);
      },
    },
    close: async () => api.close(),
  };
}

/** Nobody reads more names than this. */
const mostNames = 500;

/** Names of the Leases of the namespace; undefined: we may not list them, as elections need not. */
async function leasesIn(
  { api, namespace }: KubernetesConnection,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  try {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases?limit=${mostNames}`;
    const { status, body } = await api.request({ method: 'GET', path, signal });
    const { items } = (body ?? {}) as {
      readonly items?: readonly { readonly metadata?: { readonly name?: string } }[];
    };
    if (status !== 200 || items === undefined) return undefined;
    return items.flatMap(({ metadata }) => metadata?.name ?? []).sort();
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/** Adds the namespace that was found, so that people see it. */
function withNamespace(url: string, namespace: string): string {
  return url.replace(/^k8s:\/\//, `k8s://${namespace}`);
}
