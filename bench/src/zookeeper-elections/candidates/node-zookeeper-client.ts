import { requirePeer } from '../../zookeeper/adapters/peer-types.ts';
import type { OpenCandidate } from './candidate.ts';
import { recipe } from './recipe.ts';

type Callback<T = unknown> = (error: Error | null, value?: T) => void;

/** The part of the client that we use. */
interface Module {
  createClient(connectionString: string, options: { sessionTimeout: number }): Client;
  readonly CreateMode: { readonly EPHEMERAL_SEQUENTIAL: number };
}

interface Client {
  once(event: 'connected', listener: () => void): this;
  connect(): void;
  mkdirp(path: string, callback: Callback): void;
  create(path: string, data: Buffer, mode: number, callback: Callback<string>): void;
  getChildren(path: string, callback: Callback<string[]>): void;
  exists(path: string, watcher: () => void, callback: Callback<object>): void;
  remove(path: string, callback: Callback): void;
}

const zookeeper = requirePeer<Module>('node-zookeeper-client');

export const open: OpenCandidate = async (port, sessionTimeoutMs) => {
  const client = zookeeper.createClient(`127.0.0.1:${port}`, { sessionTimeout: sessionTimeoutMs });
  await new Promise<void>((resolve) => {
    client.once('connected', resolve);
    client.connect();
  });
  const mode = zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL;
  return recipe(
    {
      ensure: (path) => promised<void>((done) => client.mkdirp(path, done as Callback)),
      enter: (prefix) => promised((done) => client.create(prefix, Buffer.alloc(0), mode, done)),
      children: (path) => promised((done) => client.getChildren(path, done)),
      async watch(path, changed) {
        const stat = await promised<object | null | undefined>((done) =>
          client.exists(path, changed, done as Callback<object>),
        );
        return stat !== null && stat !== undefined;
      },
      remove: (path) => promised<void>((done) => client.remove(path, done as Callback)),
    },
    '/bench-nzc',
  );
};

function promised<T>(start: (done: Callback<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => {
      if (error) reject(error);
      else resolve(value as T);
    });
  });
}
