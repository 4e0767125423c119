/** The stores, as a process that owns shards opens them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Backend } from 'incumbent';
import type { MemberPlan, StoreName } from './messages.ts';

export interface Opened {
  readonly backend: Backend;
  /** ZooKeeper's and etcd's are those of the session and of the `ttl`. */
  readonly timing: { readonly lease?: number };
  close(): Promise<void>;
}

type Open = (plan: Pick<MemberPlan, 'address' | 'leaseMs'>) => Promise<Opened>;

const retryMs = 200;
const poolSize = 4;

const open: Readonly<Record<StoreName, Open>> = {
  async file({ address, leaseMs }) {
    const { file } = await import('incumbent/file');
    return { backend: file(address), timing: { lease: leaseMs }, close: async () => {} };
  },
  async postgres({ address, leaseMs }) {
    const { postgres } = await import('incumbent/postgres');
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({
      connectionString: `postgres://postgres@${address}/postgres`,
      ...{ max: poolSize, keepAlive: true, connectionTimeoutMillis: leaseMs },
    });
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    const timing = { lease: leaseMs };
    return { backend: postgres(pool), timing, close: () => pool.end() };
  },
  async redis({ address, leaseMs }) {
    const { redis } = await import('incumbent/redis');
    const { createClient } = await import('redis');
    const client = createClient({ url: `redis://${address}` });
    client.on('error', () => {});
    await client.connect();
    const timing = { lease: leaseMs };
    return { backend: redis(client), timing, close: async () => client.destroy() };
  },
  async zookeeper({ address, leaseMs }) {
    const { zookeeper } = await import('incumbent/zookeeper');
    const { connect } = await import('@incumbent/zookeeper');
    const client = await connect(`zk://${address}`, { sessionTimeoutMs: leaseMs });
    return { backend: zookeeper(client), timing: {}, close: () => client.close() };
  },
  async etcd({ address, leaseMs }) {
    const { etcd } = await import('incumbent/etcd');
    const { Client, credentials } = await import('@grpc/grpc-js');
    const client = new Client(address, credentials.createInsecure());
    return {
      backend: etcd(client, { ttl: leaseMs }),
      timing: {},
      close: async () => client.close(),
    };
  },
};

/** Tries again while the store is away, as a supervisor of the process would. */
export async function openStore(plan: MemberPlan): Promise<Opened> {
  for (;;) {
    try {
      return await open[plan.store](plan);
    } catch {
      await sleep(retryMs);
    }
  }
}
