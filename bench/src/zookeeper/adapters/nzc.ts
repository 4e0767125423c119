/** node-zookeeper-client: callbacks. */
import { nodeBytes, numberedPath } from '../messages.ts';
import type { Adapter, Connection, ConnectOptions } from './adapter.ts';
import { callbackLoop, credentials, nodeData } from './adapter.ts';
import type { NzcClient, NzcModule } from './peer-types.ts';
import { requirePeer } from './peer-types.ts';

const zookeeper = requirePeer<NzcModule>('node-zookeeper-client');
const data = nodeData(nodeBytes);

export const adapter: Adapter = {
  async connect(options) {
    const client = open(options);
    await new Promise<void>((resolve) => {
      client.once('connected', resolve);
      client.connect();
    });
    return connectionOf(client);
  },
  async connectAndGet(options, path) {
    const client = open(options);
    // It queues what is called before it is connected.
    client.connect();
    const connection = connectionOf(client);
    await connection.get(path);
    return connection;
  },
};

function open({ port, sessionTimeoutMs, auth }: ConnectOptions): NzcClient {
  const client = zookeeper.createClient(`127.0.0.1:${port}`, { sessionTimeout: sessionTimeoutMs });
  if (auth) client.addAuthInfo(credentials.scheme, Buffer.from(credentials.auth));
  return client;
}

function connectionOf(client: NzcClient): Connection {
  return {
    get: (path) => promised((done) => client.getData(path, done)),
    gets: (path, operations, window, completed) =>
      callbackLoop(operations, window, (_index, done) => client.getData(path, done), completed),
    creates: (parent, from, operations, window) =>
      callbackLoop(operations, window, (index, done) =>
        client.create(numberedPath(parent, from + index), data, done),
      ),
    watch: (path, changed) => promised((done) => client.getData(path, changed, done)),
    set: (path) => promised((done) => client.setData(path, data, done)),
    close: () =>
      new Promise((resolve) => {
        client.on('disconnected', resolve);
        client.close();
      }),
  };
}

function promised(start: (done: (error: unknown) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => {
      if (error) reject(error as Error);
      else resolve();
    });
  });
}
