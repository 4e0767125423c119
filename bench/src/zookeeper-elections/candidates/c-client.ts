/** zookeeper: an addon around the C client. */
import { requirePeer } from '../../zookeeper/adapters/peer-types.ts';
import type { OpenCandidate } from './candidate.ts';
import { recipe } from './recipe.ts';

/** The part of the client that we use. */
interface Client {
  once(event: 'connect', listener: () => void): this;
  init(config: {
    connect: string;
    timeout: number;
    debug_level: number;
    host_order_deterministic: boolean;
  }): this;
  mkdirp(path: string, callback: (error: Error | null) => void): void;
  a_create(path: string, data: Buffer, flags: number, callback: Callback<string>): void;
  a_get_children(path: string, watch: boolean, callback: Callback<string[]>): void;
  aw_exists(path: string, watcher: () => void, callback: Callback<object>): void;
  a_delete_(path: string, version: number, callback: Callback): void;
}

type Callback<T = unknown> = (rc: number, error: string, value: T) => void;

const ZooKeeper = requirePeer<new () => Client>('zookeeper');
const logsErrorsOnly = 1;
const ephemeralSequential = 3;
const noNode = -101;

export const open: OpenCandidate = async (port, timeout) => {
  const client = new ZooKeeper();
  await new Promise<void>((resolve) => {
    client.once('connect', resolve);
    client.init({
      connect: `127.0.0.1:${port}`,
      timeout,
      debug_level: logsErrorsOnly,
      host_order_deterministic: false,
    });
  });
  return recipe(
    {
      ensure: (path) =>
        new Promise((resolve, reject) => {
          client.mkdirp(path, (error) => (error ? reject(error) : resolve()));
        }),
      enter: (prefix) =>
        promised((done) => client.a_create(prefix, Buffer.alloc(0), ephemeralSequential, done)),
      children: (path) => promised((done) => client.a_get_children(path, false, done)),
      watch: (path, changed) =>
        new Promise((resolve, reject) => {
          client.aw_exists(path, changed, (rc, error) => {
            if (rc === 0 || rc === noNode) resolve(rc === 0);
            else reject(new Error(`${rc} ${error}`));
          });
        }),
      async remove(path) {
        await promised((done) => client.a_delete_(path, -1, done));
      },
    },
    '/bench-c',
  );
};

function promised<T>(start: (done: Callback<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((rc, error, value) => {
      if (rc === 0) resolve(value);
      else reject(new Error(`${rc} ${error}`));
    });
  });
}
