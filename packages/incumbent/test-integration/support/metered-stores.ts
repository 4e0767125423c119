/** The stores that teams run, each with the means for a test to count its requests. */
import { Client, credentials } from '@grpc/grpc-js';
import type { Meter, ProtocolName, Traveller } from '@incumbent/servers';
import {
  etcdAvailable,
  FakeApiServer,
  startEtcd,
  startMeter,
  startPostgres,
  startRedis,
} from '@incumbent/servers';
import { etcd } from '../../src/backends/etcd/index.ts';
import { apiServer, kubernetes } from '../../src/backends/kubernetes/index.ts';
import { postgres } from '../../src/backends/postgres/index.ts';
import { redis } from '../../src/backends/redis/index.ts';
import type { Backend } from '../../src/core/contest.ts';
import { missing as noPostgres, oldTable, openClient as openPostgres } from './postgres.ts';
import { missing as noRedis, openClient as openRedis } from './redis.ts';

const noEtcd = etcdAvailable();
if (noEtcd !== undefined && process.env['CI'] === 'true') throw new Error(noEtcd);

/** A client of its own, connected through a meter. */
export interface MeteredClient {
  readonly backend: Backend;
  readonly meter: Meter;
  close(): Promise<void>;
}

export interface RunningStore {
  open(traveller?: Traveller): Promise<MeteredClient>;
  close(): Promise<void>;
}

export interface MeteredStore {
  readonly name: string;
  /** Why there is none. */
  readonly missing: string | undefined;
  /** Connections of a client that waits and is woken. */
  readonly connections: number;
  /** Of a clean hand-over. Two where what wakes the next one brings the record along. */
  readonly roundTrips: 2 | 3;
  /** @param ttlMs D, where the store gives it */
  start(ttlMs: number): Promise<RunningStore>;
}

interface Opened {
  readonly backend: Backend;
  close(): unknown;
}

function running(
  server: { readonly port: number; close(): Promise<void> },
  protocol: ProtocolName,
  connect: (port: number) => Promise<Opened>,
): RunningStore {
  const clients: MeteredClient[] = [];
  return {
    async open(traveller) {
      const metered = { port: server.port, protocol };
      const meter = await startMeter(traveller === undefined ? metered : { ...metered, traveller });
      const opened = await connect(meter.port);
      const client = {
        backend: opened.backend,
        meter,
        async close() {
          await opened.close();
          await meter.close();
        },
      };
      clients.push(client);
      return client;
    },
    async close() {
      await Promise.all(clients.map((client) => client.close()));
      await server.close();
    },
  };
}

export const meteredStores: readonly MeteredStore[] = [
  ...(['pg', 'postgres'] as const).map(
    (driver): MeteredStore => ({
      name: `PostgreSQL by ${driver}`,
      missing: noPostgres,
      connections: 1,
      roundTrips: 3,
      async start() {
        const server = await startPostgres();
        await server.sql(oldTable);
        return running(server, 'postgres', async (port) => {
          const url = server.url.replace(`${server.port}`, `${port}`);
          // The first time that it says something by a connection, postgres takes a round trip to ask for
          // its types. It has another connection that listens.
          const max = driver === 'pg' ? 10 : 1;
          const { client, close } = openPostgres(driver, url, max);
          return { backend: postgres(client), close };
        });
      },
    }),
  ),
  ...(['redis', 'ioredis'] as const).map(
    (library): MeteredStore => ({
      name: `Redis by ${library}`,
      missing: noRedis,
      connections: 2,
      roundTrips: 3,
      async start() {
        return running(await startRedis(), 'redis', async (port) => {
          const { client, close } = await openRedis(library, { port });
          // Otherwise no candidate leads before a server was there for one lease.
          return { backend: redis(client, { durable: true }), close };
        });
      },
    }),
  ),
  {
    name: 'etcd',
    missing: noEtcd,
    connections: 1,
    roundTrips: 3,
    async start(ttlMs) {
      return running(await startEtcd(), 'grpc', async (port) => {
        const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
          'grpc.use_local_subchannel_pool': 1,
        });
        return { backend: etcd(client, { ttl: ttlMs }), close: () => client.close() };
      });
    },
  },
  {
    name: 'Kubernetes (a stand-in for the API server)',
    missing: undefined,
    connections: 2,
    roundTrips: 2,
    async start() {
      const server = await FakeApiServer.start({ plain: true });
      return running(server, 'http', async (port) => {
        const api = apiServer({ ...server.access, url: `http://127.0.0.1:${port}` });
        return { backend: kubernetes(api), close: () => api.close() };
      });
    },
  },
];
