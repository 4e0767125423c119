/** A process that owns shards. Its argument names the store. */
import { credentials, Client as GrpcClient } from '@grpc/grpc-js';
import type { Shards } from '@incumbent/shards';
import { createShards } from '@incumbent/shards';
import { connect } from '@incumbent/zookeeper';
import type { Backend } from 'incumbent';
import { etcd } from 'incumbent/etcd';
import { postgres } from 'incumbent/postgres';
import { redis } from 'incumbent/redis';
import { zookeeper } from 'incumbent/zookeeper';
import pg from 'pg';
import { createClient } from 'redis';
import { serve } from '../../calls/serve.ts';
import { monotonicMs } from '../../clock.ts';
import { urlOf } from '../../stores/contenders/postgres-probe.ts';
import type { MemberMethods, OwnedEvent, StoreName } from '../messages.ts';

interface Opened {
  readonly backend: Backend;
  /** ZooKeeper's and etcd's are those of the session and of the `ttl`. */
  readonly timing: { readonly lease?: number };
}

const open: Readonly<Record<StoreName, (port: number, leaseMs: number) => Promise<Opened>>> = {
  async zookeeper(port, leaseMs) {
    const client = await connect(`zk://127.0.0.1:${port}`, { sessionTimeoutMs: leaseMs });
    return { backend: zookeeper(client), timing: {} };
  },
  async postgres(port, leaseMs) {
    const pool = new pg.Pool({ connectionString: urlOf(port) });
    return { backend: postgres(pool), timing: { lease: leaseMs } };
  },
  async redis(port, leaseMs) {
    const client = createClient({ socket: { host: '127.0.0.1', port } });
    client.on('error', () => {});
    await client.connect();
    return { backend: redis(client), timing: { lease: leaseMs } };
  },
  async etcd(port, leaseMs) {
    const client = new GrpcClient(`127.0.0.1:${port}`, credentials.createInsecure());
    return { backend: etcd(client, { ttl: leaseMs }), timing: {} };
  },
};

const events: OwnedEvent[] = [];
let shards: Shards<number> | undefined;

serve<MemberMethods>({
  async join({ port, leaseMs, name, shards: count }) {
    const { backend, timing } = await open[process.argv[2] as StoreName](port, leaseMs);
    shards = createShards({
      ...{ name, backend, shards: count, init: 'auto', ...timing },
      own: (shard, { signal }) =>
        new Promise<void>((resolve) => {
          events.push({ shard, atMs: monotonicMs(), isOwned: true });
          const stopped = () => {
            events.push({ shard, atMs: monotonicMs(), isOwned: false });
            resolve();
          };
          if (signal.aborted) stopped();
          else signal.addEventListener('abort', stopped, { once: true });
        }),
      onTrouble: (trouble) => console.error(String(trouble)),
    });
    await shards.joined;
    return null;
  },
  owned: () => shards?.owned().length ?? 0,
  log: () => events,
  async drain() {
    await shards?.drain();
    return null;
  },
});
