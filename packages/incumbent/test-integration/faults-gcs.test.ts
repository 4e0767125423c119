import { Storage } from '@google-cloud/storage';
import { FakeGcs } from '@incumbent/servers';
import { startProxy } from '@incumbent/zookeeper-testing';
import { gcs } from '../src/backends/gcs/index.ts';
import { describeFaults } from './support/fault-suite.ts';
import { faultTiming } from './support/fault-trial.ts';

// Objects of Cloud Storage by the real client, whose connections are in clear text and kept alive.
describeFaults({
  title: 'Cloud Storage',
  missing: undefined,
  async start() {
    const server = await FakeGcs.start();
    return {
      timing: faultTiming(2_000),
      isWrite: (chunk) => /POST \/upload\//.test(Buffer.from(chunk).toString('latin1')),
      async connect() {
        const proxy = await startProxy(server);
        const storage = new Storage({
          apiEndpoint: `http://127.0.0.1:${proxy.port}`,
          projectId: 'test',
        });
        const backend = gcs(storage, { bucket: 'elections', maxWritesPerSecond: 100 });
        return { backend, proxy, close: async () => {} };
      },
      close: () => server.close(),
    };
  },
});
