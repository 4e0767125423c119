import { startServer } from '@incumbent/zookeeper-testing';
import { behaviour } from './suite.ts';

behaviour({
  name: 'a standalone server',
  capabilities: { tls: false, dynamicConfig: false },
  async open() {
    const server = await startServer({
      systemProperties: { 'znode.container.checkIntervalMs': 200 },
    });
    return {
      url: server.connectionString,
      port: server.port,
      options: {},
      elapse: () => Promise.resolve(),
      close: () => server.close(),
    };
  },
});
