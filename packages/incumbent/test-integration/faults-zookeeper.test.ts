import { serverAvailable, startProxy, startServer } from '@incumbent/zookeeper-testing';
import { connect } from '../../zookeeper/src/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import { describeFaults } from './support/fault-suite.ts';

const sessionTimeoutMs = 2_500;
/** Operations that take a number in the log of the store: create, delete, setData, multi. */
const writing: readonly number[] = [1, 2, 5, 14, 15];

describeFaults({
  title: 'ZooKeeper',
  missing: serverAvailable(),
  async start() {
    const server = await startServer({ tickTimeMs: 100 });
    return {
      timing: {},
      winsInOneWrite: false,
      isWrite: (chunk) => operationsIn(chunk).some((operation) => writing.includes(operation)),
      async connect() {
        const proxy = await startProxy(server);
        const client = await connect(proxy.connectionString, { sessionTimeoutMs });
        return { backend: zookeeper(client), proxy, close: () => client.close() };
      },
      close: () => server.close(),
    };
  },
});

/** The operations of a chunk of whole frames. */
function operationsIn(chunk: Uint8Array): readonly number[] {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
  const operations: number[] = [];
  for (let at = 0; at + 12 <= bytes.length; at += 4 + bytes.readInt32BE(at)) {
    operations.push(bytes.readInt32BE(at + 8));
  }
  return operations;
}
