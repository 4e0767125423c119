import { startServer } from '../../src/testing/server/server.ts';
import { behaviour } from './suite.ts';

behaviour({
  name: 'a standalone server',
  async open() {
    const server = await startServer({
      systemProperties: { 'znode.container.checkIntervalMs': 200 },
    });
    return {
      url: server.connectionString,
      port: server.port,
      options: {},
      capabilities: { tls: false, ensemble: false, realClock: true, dynamicConfig: false },
      elapse: () => Promise.resolve(),
      close: () => server.close(),
    };
  },
});
