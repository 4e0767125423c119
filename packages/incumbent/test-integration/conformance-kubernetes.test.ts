import { FakeApiServer } from '@incumbent/servers';
import { KubeConfig } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { Refusals } from '../src/backends/kubernetes/errors.ts';
import type { KubernetesApi } from '../src/backends/kubernetes/index.ts';
import { apiServer, fromClientNode, kubernetes } from '../src/backends/kubernetes/index.ts';
import { KubernetesStore } from '../src/backends/kubernetes/store.ts';
import { LeaseWatches } from '../src/backends/kubernetes/watches.ts';
import type { Backend, LeaseStore } from '../src/testing/index.ts';
import { electionScenarios, leaseStoreScenarios, runConformance } from '../src/testing/index.ts';
import { storeScope } from '../test/support/store-scope.ts';

const leaseMs = 5_000;

let server: FakeApiServer;

beforeAll(async () => {
  server = await FakeApiServer.start();
});

afterAll(() => server?.close());

function kubeConfig(): KubeConfig {
  const config = new KubeConfig();
  const { url, token, ca = '' } = server.access;
  config.loadFromClusterAndUser(
    { name: 'test', server: url, caData: Buffer.from(ca).toString('base64'), skipTLSVerify: false },
    { name: 'test', token },
  );
  return config;
}

const clients: readonly (readonly [string, () => KubernetesApi])[] = [
  ['by plain HTTPS', () => apiServer(server.access)],
  ['by a KubeConfig of @kubernetes/client-node', () => fromClientNode(kubeConfig())],
];

for (const [name, connect] of clients) {
  describe.concurrent(`Leases of Kubernetes ${name}`, () => {
    // One client for all, as in a program: no test makes new connections.
    let api: KubernetesApi;

    beforeAll(() => {
      api = connect();
    });

    afterAll(() => api?.close());

    for (const scenario of leaseStoreScenarios) {
      if (['lists', 'deathProof', 'age'].includes(scenario.needs ?? '')) continue;
      test.concurrent(scenario.name, async ({ expect }) => {
        const [result] = await runConformance<LeaseStore>([scenario], {
          open: (election) => openStore(api, election),
          capabilities: { hints: true },
          leaseMs,
          prefix: 'store',
        });
        expect(result?.reason).toBeUndefined();
      });
    }

    for (const scenario of electionScenarios) {
      if (scenario.needs === 'lists') continue;
      test.concurrent(scenario.name, async ({ expect }) => {
        const [result] = await runConformance<Backend>([scenario], {
          // Another process has a client and a backend of its own.
          open: () => kubernetes(api),
          capabilities: { hints: true },
          leaseMs,
          prefix: 'election',
        });
        expect(result?.reason).toBeUndefined();
      });
    }
  });
}

function openStore(api: KubernetesApi, election: string): LeaseStore {
  const refusals = new Refusals(api.url, 'default');
  const watches = new LeaseWatches(api, 'default', refusals);
  const scope = storeScope(election, leaseMs);
  return new KubernetesStore({ api, namespace: 'default', refusals, watches }, scope, election);
}
