/** Requests to a server, counted by the server itself. */
import { readFile } from 'node:fs/promises';
import type { EtcdServer, PostgresServer, RedisServer } from '@incumbent/servers';
import type { TestServer } from '@incumbent/zookeeper-testing';
import { createClient } from 'redis';
import { readCounters } from '../zookeeper-elections/server-counters.ts';
import type { StoreName } from './messages.ts';

export interface CountedServers {
  readonly zookeeper: TestServer;
  readonly postgres: PostgresServer;
  readonly redis: RedisServer;
  readonly etcd: EtcdServer;
}

export interface RequestCounter {
  /** So many since some moment before the counter was made. */
  read(): Promise<number>;
  close(): Promise<void>;
}

const counters: {
  readonly [Store in StoreName]: (server: CountedServers[Store]) => Promise<RequestCounter>;
} = {
  /** Packets, also the pings that keep a session. */
  async zookeeper(server) {
    return {
      read: async () => (await readCounters(server)).packetsReceived,
      close: async () => {},
    };
  },
  /** The log of all statements. */
  async postgres(server) {
    const logs = async (statements: 'all' | 'none') => {
      await server.sql(`alter system set log_statement = '${statements}'`);
      await server.sql('select pg_reload_conf()');
    };
    await logs('all');
    return {
      async read() {
        const log = await readFile(server.logPath, 'utf8');
        return log.split('\n').filter((line) => /LOG: {2}(statement|execute)/.test(line)).length;
      },
      close: () => logs('none'),
    };
  },
  /** MONITOR, without the commands of scripts. */
  async redis(server) {
    const client = createClient({ url: server.url });
    await client.connect();
    let count = 0;
    await client.monitor((line) => {
      if (!/^\S+ \[\d+ lua\]/.test(String(line))) count += 1;
    });
    return { read: async () => count, close: async () => client.destroy() };
  },
  /** Messages of gRPC, also those on streams. */
  async etcd(server) {
    return {
      async read() {
        const metrics = await (await fetch(`${server.url}/metrics`)).text();
        const each = metrics.matchAll(/^grpc_server_msg_received_total\{[^}]*\} (\S+)$/gm);
        return [...each].reduce((sum, [, value]) => sum + Number(value), 0);
      },
      close: async () => {},
    };
  },
};

export async function countRequests<Store extends StoreName>(
  store: Store,
  serverOf: (store: Store) => Promise<CountedServers[Store]>,
): Promise<RequestCounter> {
  return counters[store](await serverOf(store));
}
