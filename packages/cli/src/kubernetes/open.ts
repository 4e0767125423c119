import { kubernetes } from 'incumbent/kubernetes';
import type { OpenStore, StoreNeeds } from '../context.ts';
import type { Machine } from '../url/secrets.ts';
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

/** Adds the namespace that was found, so that people see it. */
function withNamespace(url: string, namespace: string): string {
  return url.replace(/^k8s:\/\//, `k8s://${namespace}`);
}
