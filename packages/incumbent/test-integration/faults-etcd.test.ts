import { Client, credentials } from '@grpc/grpc-js';
import { etcdAvailable, startEtcd } from '@incumbent/servers';
import { startProxy } from '@incumbent/zookeeper-testing';
import { etcd } from '../src/backends/etcd/index.ts';
import { describeFaults } from './support/fault-suite.ts';

describeFaults({
  title: 'etcd',
  missing: etcdAvailable(),
  async start() {
    const server = await startEtcd();
    return {
      timing: {},
      winsInOneWrite: false,
      isWrite: comparesRevisions,
      async connect() {
        const proxy = await startProxy(server);
        const client = new Client(`127.0.0.1:${proxy.port}`, credentials.createInsecure(), {
          'grpc.use_local_subchannel_pool': 1,
          'grpc.initial_reconnect_backoff_ms': 100,
          'grpc.max_reconnect_backoff_ms': 500,
        });
        const backend = etcd(client, { ttl: '5s', electionTimeout: 100 });
        return { backend, proxy, close: async () => client.close() };
      },
      close: () => server.close(),
    };
  },
});

const fieldOfCompares = 0x0a;
const fieldOfTarget = 0x10;

/**
 * True when a message of gRPC in it begins with a comparison by the revision of a key's creation or
 * change. Then it is a transaction of ours that enters, confirms or writes. (Before it: not
 * compressed, and its length in four bytes. Behind the first field: the length of the comparison.)
 */
function comparesRevisions(chunk: Uint8Array): boolean {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
  for (let at = bytes.indexOf('\0\0\0'); at >= 0; at = bytes.indexOf('\0\0\0', at + 1)) {
    if (bytes[at + 5] === fieldOfCompares && bytes[at + 7] === fieldOfTarget) return true;
  }
  return false;
}
