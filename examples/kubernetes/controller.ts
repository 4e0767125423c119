/**
 * A controller that runs in one of all Pods: keeps a checksum on every ConfigMap that asks for one.
 *
 *     kubectl apply -f examples/kubernetes/
 *
 * Outside of the cluster, with the rights of whoever runs `kubectl proxy`:
 *
 *     API_URL=http://127.0.0.1:8001 node examples/dist/kubernetes/controller.js
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Term } from 'incumbent';
import { createElection } from 'incumbent';
import type { KubernetesGuard, KubernetesObject } from 'incumbent/kubernetes';
import { apiServer, inCluster, kubernetes, leaderHealthz, withToken } from 'incumbent/kubernetes';

const { API_URL, PORT = '8080', LEASE = '15s' } = process.env;
const everyMs = Number(process.env['EVERY_MS'] ?? 10_000);
const label = 'checksum.example.com/wanted';
const annotation = 'checksum.example.com/sha256';

const health = leaderHealthz(); // before the election, to hear of all that happens in it
const probes = createServer((request, response) => {
  if (request.url === '/healthz') health.handler(request, response);
  else response.writeHead(404).end();
}).listen(Number(PORT));

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());

const api = API_URL === undefined ? inCluster() : apiServer({ url: API_URL });
const election = createElection({
  name: 'checksum-controller',
  backend: kubernetes(api),
  lease: LEASE,
});

await election.lead(control, { signal: stop.signal }).catch((error: unknown) => {
  if (!stop.signal.aborted) throw error;
});
await election.close();
api.close();
probes.close();

/** While this Pod leads. */
async function control(term: Term<KubernetesGuard>): Promise<void> {
  for (;;) {
    try {
      await reconcile(term);
    } catch (error) {
      term.assertLeading(); // if that is why: ends this term, and campaigns again
      console.error(`next time: ${(error as Error).message}`);
    }
    await sleep(everyMs, undefined, { signal: term.signal }); // rejects when the term is over
  }
}

interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** From what there is to what there should be, whatever happened before. */
async function reconcile(term: Term<KubernetesGuard>): Promise<void> {
  const { signal } = term;
  const path = `/api/v1/namespaces/${api.namespace ?? 'default'}/configmaps`;
  const list = await api.request({
    method: 'GET',
    path: `${path}?labelSelector=${encodeURIComponent(`${label}=true`)}`,
    signal,
  });
  if (list.status !== 200) throw new Error(`${path} cannot be listed: ${list.status}`);
  for (const map of (list.body as { items: ConfigMap[] }).items) {
    if (map.metadata.annotations?.[annotation] === checksumOf(map)) continue;
    term.assertLeading(500); // throws unless half a second of belief is left for the next step
    // Refused once a newer term has written this object.
    await withToken<ConfigMap>(api, term.token, `${path}/${map.metadata.name}`, stamped, {
      signal,
    });
  }
}

function stamped(map: ConfigMap): ConfigMap {
  const annotations = { ...map.metadata.annotations, [annotation]: checksumOf(map) };
  return { ...map, metadata: { ...map.metadata, annotations } };
}

function checksumOf({ data = {} }: ConfigMap): string {
  const sorted = Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex');
}
