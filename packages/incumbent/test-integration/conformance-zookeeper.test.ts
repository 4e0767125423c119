import { startServer } from '@incumbent/zookeeper-testing';
import { describeElections } from './support/zookeeper-conformance.ts';

describeElections('a server', async () => {
  const server = await startServer({ tickTimeMs: 200 });
  const { connectionString } = server;
  return { connectionString, target: server, close: () => server.close() };
});
