/** zookeeper: the C client behind callbacks. */
import { nodeBytes, numberedPath } from '../messages.ts';
import type { Adapter, Connection, ConnectOptions } from './adapter.ts';
import { callbackLoop, credentials, nodeData } from './adapter.ts';
import type { NativeCallback, NativeClient, NativeModule } from './peer-types.ts';
import { requirePeer } from './peer-types.ts';

const ZooKeeper = requirePeer<NativeModule>('zookeeper');
const data = nodeData(nodeBytes);
const logsErrorsOnly = 1;

export const adapter: Adapter = {
  connect: open,
  async connectAndGet(options, path) {
    const connection = await open(options);
    await connection.get(path);
    return connection;
  },
};

async function open({ port, sessionTimeoutMs, auth }: ConnectOptions): Promise<Connection> {
  const client = new ZooKeeper();
  await new Promise<void>((resolve) => {
    client.once('connect', resolve);
    client.init({
      connect: `127.0.0.1:${port}`,
      timeout: sessionTimeoutMs,
      debug_level: logsErrorsOnly,
      host_order_deterministic: false,
    });
  });
  if (auth) {
    await promised((done) => client.add_auth(credentials.scheme, credentials.auth, callback(done)));
  }
  return connectionOf(client);
}

function connectionOf(client: NativeClient): Connection {
  return {
    get: (path) => promised((done) => client.a_get(path, false, callback(done))),
    gets: (path, operations, window, completed) =>
      callbackLoop(
        operations,
        window,
        (_index, done) => client.a_get(path, false, callback(done)),
        completed,
      ),
    creates: (parent, from, operations, window) =>
      callbackLoop(operations, window, (index, done) =>
        client.a_create(numberedPath(parent, from + index), data, 0, callback(done)),
      ),
    watch: (path, changed) => promised((done) => client.aw_get(path, changed, callback(done))),
    set: (path) => promised((done) => client.a_set(path, data, -1, callback(done))),
    close: () =>
      new Promise((resolve) => {
        client.once('close', resolve);
        client.close();
      }),
  };
}

type Done = (error: unknown) => void;

function callback(done: Done): NativeCallback {
  return (rc, error) => done(rc === 0 ? undefined : new Error(`${rc} ${error}`));
}

function promised(start: (done: Done) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => {
      if (error) reject(error as Error);
      else resolve();
    });
  });
}
