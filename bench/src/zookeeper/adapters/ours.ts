/** `@incumbent/zookeeper`: promises. */
import type { ZooKeeper } from '@incumbent/zookeeper';
import { createClient } from '@incumbent/zookeeper';
import { nodeBytes, numberedPath } from '../messages.ts';
import type { Adapter, Connection, ConnectOptions } from './adapter.ts';
import { credentials, nodeData, promiseLoop } from './adapter.ts';

const data = nodeData(nodeBytes);

export const adapter: Adapter = {
  async connect(options) {
    const client = open(options);
    await client.connected();
    return connectionOf(client);
  },
  async connectAndGet(options, path) {
    const client = open(options);
    await client.get(path);
    return connectionOf(client);
  },
};

function open({ port, sessionTimeoutMs, auth }: ConnectOptions): ZooKeeper {
  return createClient(`zk://127.0.0.1:${port}`, {
    sessionTimeoutMs,
    ...(auth ? { auth: [{ scheme: credentials.scheme, credentials: credentials.auth }] } : {}),
  });
}

function connectionOf(client: ZooKeeper): Connection {
  return {
    async get(path) {
      await client.get(path);
    },
    gets: (path, operations, window, completed) =>
      promiseLoop(operations, window, () => client.get(path), completed),
    creates: (parent, from, operations, window) =>
      promiseLoop(operations, window, (index) =>
        client.create(numberedPath(parent, from + index), data),
      ),
    async watch(path, changed) {
      const watch = await client.watch(path);
      void watch.changed.then(changed);
    },
    async set(path) {
      await client.set(path, data);
    },
    close: () => client.close(),
  };
}
