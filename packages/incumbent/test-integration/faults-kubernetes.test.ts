import { FakeApiServer } from '@incumbent/servers';
import { startProxy } from '@incumbent/zookeeper-testing';
import { apiServer, kubernetes } from '../src/backends/kubernetes/index.ts';
import { describeFaults } from './support/fault-suite.ts';
import { faultTiming } from './support/fault-trial.ts';

// Leases behind a stand-in for the API server: in clear text, so that a fault can be aimed.
describeFaults({
  title: 'Leases of Kubernetes',
  missing: undefined,
  async start() {
    const server = await FakeApiServer.start({ plain: true });
    return {
      timing: faultTiming(1_500),
      isWrite: (chunk) => /^(?:POST|PUT|PATCH) /.test(Buffer.from(chunk).toString('latin1')),
      async connect() {
        const proxy = await startProxy(server);
        const api = apiServer({ ...server.access, url: `http://127.0.0.1:${proxy.port}` });
        return { backend: kubernetes(api), proxy, close: async () => {} };
      },
      close: () => server.close(),
    };
  },
});
