import { FakeS3 } from '@incumbent/servers';
import { startProxy } from '@incumbent/zookeeper-testing';
import { s3 } from '../src/backends/s3/index.ts';
import { describeFaults } from './support/fault-suite.ts';
import { faultTiming } from './support/fault-trial.ts';
import { bucketOptions, s3Client } from './support/s3.ts';

// The SDK itself repeats requests without an answer, and so meets its own success.
describeFaults({
  title: 'objects of S3',
  missing: undefined,
  async start() {
    const server = await FakeS3.start();
    return {
      timing: faultTiming(2_400),
      // Proofs of the endpoint are no records.
      isWrite: (chunk) => Buffer.from(chunk).includes('"nonce":'),
      async connect() {
        const proxy = await startProxy(server);
        const client = s3Client({ url: `http://127.0.0.1:${proxy.port}` });
        const backend = s3(client, bucketOptions);
        return { backend, proxy, close: async () => client.destroy() };
      },
      close: () => server.close(),
    };
  },
});
