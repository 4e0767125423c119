import { adminToken } from '@incumbent/servers';
import type { ApiRequest } from 'incumbent/kubernetes';
import { apiServer, kubernetes } from 'incumbent/kubernetes';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';
import { ours } from './ours.ts';

const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';

export const open: OpenContender = async ({ port }, leaseMs) => {
  const api = apiServer({ url: `http://127.0.0.1:${port}`, token: adminToken });
  const call = async (request: ApiRequest) => {
    const { status, text, body } = await api.request(request);
    if (status >= 300) throw new Error(`${request.method}: ${status} ${text}`);
    return body as { readonly metadata: { readonly resourceVersion: string } };
  };
  const path = `${leases}/${probeName}`;
  const annotations = { probe: probeText };
  const lease = (resourceVersion: string | undefined, leaseTransitions: number) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: probeName, annotations, resourceVersion },
    spec: { leaseTransitions },
  });
  let { metadata } = await call({ method: 'POST', path: leases, body: lease(undefined, 0) });
  let writes = 0;
  return ours(
    kubernetes(api),
    { lease: leaseMs },
    {
      read: () => call({ method: 'GET', path }),
      async write() {
        // The server writes nothing when the object stays the same.
        writes += 1;
        const body = lease(metadata.resourceVersion, writes);
        ({ metadata } = await call({ method: 'PUT', path, body }));
      },
      wake(topic) {
        const body = { ...lease(undefined, 0), metadata: { name: topic, annotations } };
        return call({ method: 'POST', path: leases, body });
      },
      listen: (topic, onWoken) =>
        new Promise<void>((resolve, reject) => {
          const done = new AbortController();
          api
            .watch({
              path: `${leases}?watch=1&fieldSelector=metadata.name=${topic}`,
              signal: done.signal,
              onOpen: resolve,
              onEvent() {
                onWoken();
                done.abort();
              },
            })
            .catch(reject);
        }),
    },
  );
};
