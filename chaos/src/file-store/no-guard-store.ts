import { Client, credentials } from '@grpc/grpc-js';
import { connect } from '@incumbent/zookeeper';
import type { ElectionOptions } from 'incumbent';
import { etcd } from 'incumbent/etcd';
import { file } from 'incumbent/file';
import { postgres } from 'incumbent/postgres';
import { redis } from 'incumbent/redis';
import { zookeeper } from 'incumbent/zookeeper';
import pg from 'pg';
import { createClient } from 'redis';

interface OpenedStore {
  /** On ZooKeeper and etcd the lease is that of the session. */
  readonly options: Pick<ElectionOptions<unknown>, 'backend' | 'lease'>;
  close(): Promise<unknown>;
}

/** As much of the store's URL as the runs of chaos write. */
export async function openStore(store: string, lease: string): Promise<OpenedStore> {
  const [, scheme = '', rest = ''] = /^(\w+):(.*)$/.exec(store) ?? [];
  switch (scheme) {
    case 'zk': {
      const client = await connect(store);
      return { options: { backend: zookeeper(client) }, close: () => client.close() };
    }
    case 'postgres': {
      const pool = new pg.Pool({ connectionString: store });
      pool.on('error', () => {});
      return { options: { backend: postgres(pool), lease }, close: () => pool.end() };
    }
    case 'redis': {
      const url = new URL(store);
      const tokenFloor = BigInt(url.searchParams.get('token-floor') ?? 0);
      const client = createClient({ url: `redis://${url.host}` });
      client.on('error', () => {});
      await client.connect();
      return {
        options: { backend: redis(client, { tokenFloor }), lease },
        close: async () => client.destroy(),
      };
    }
    case 'etcd': {
      const [hosts = '', query] = rest.replace('//', '').split('?');
      const clients = hosts
        .split(',')
        .map((host) => new Client(host, credentials.createInsecure()));
      const electionTimeout = new URLSearchParams(query).get('election-timeout') ?? '1s';
      return {
        options: { backend: etcd(clients, { ttl: lease, electionTimeout }) },
        close: async () => {
          for (const client of clients) client.close();
        },
      };
    }
    default:
      return { options: { backend: file(rest), lease }, close: async () => {} };
  }
}
