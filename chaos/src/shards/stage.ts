import { join } from 'node:path';
import {
  etcdAvailable,
  postgresAvailable,
  redisAvailable,
  startEtcd,
  startPostgres,
  startRedis,
} from '@incumbent/servers';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import { serverAvailable, startProxy, startServer } from '@incumbent/zookeeper-testing';
import type { Timing } from 'incumbent';
import { resolveTiming } from 'incumbent';
import type { StoreName } from './messages.ts';

/** A server that keeps its data when it is killed. */
interface Server {
  readonly port: number;
  kill(): Promise<void>;
  start(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): void;
  close(): Promise<void>;
}

interface Store {
  readonly leaseMs: number;
  /** Why it cannot be had here. */
  missing(): string | undefined;
  timingOf(leaseMs: number): Timing;
  /** Undefined: it is a directory. */
  readonly start?: () => Promise<Server>;
}

const ordinary = (leaseMs: number) => resolveTiming({ lease: leaseMs });
const ofSession = (leaseMs: number) => resolveTiming({}, { sessionTimeoutMs: leaseMs });

export const stores: Readonly<Record<StoreName, Store>> = {
  file: { leaseMs: 2_000, missing: () => undefined, timingOf: ordinary },
  postgres: {
    leaseMs: 2_000,
    missing: postgresAvailable,
    timingOf: ordinary,
    start: () => startPostgres({ settings: { max_connections: 200 } }),
  },
  redis: {
    leaseMs: 2_000,
    missing: redisAvailable,
    timingOf: ordinary,
    start: () => startRedis({ appendFsync: 'always' }),
  },
  zookeeper: {
    leaseMs: 3_000,
    missing: serverAvailable,
    timingOf: ofSession,
    async start() {
      const server = await startServer({ tickTimeMs: 200 });
      return {
        port: server.port,
        kill: () => server.kill(),
        start: () => server.restart(),
        freeze: () => server.freeze(),
        thaw: () => server.thaw(),
        close: () => server.close(),
      };
    },
  },
  etcd: {
    leaseMs: 3_000,
    missing: etcdAvailable,
    timingOf: ofSession,
    start: () => startEtcd(),
  },
};

/** The store of a run, and the network between it and each process. */
export class Stage {
  readonly store: StoreName;
  readonly leaseMs: number;
  readonly timing: Timing;
  readonly server: Server | undefined;
  readonly #directory: string;
  readonly #proxies: TestProxy[] = [];

  private constructor(store: StoreName, server: Server | undefined, directory: string) {
    const { leaseMs, timingOf } = stores[store];
    this.store = store;
    this.leaseMs = leaseMs;
    this.timing = timingOf(leaseMs);
    this.server = server;
    this.#directory = directory;
  }

  static async start(store: StoreName, directory: string): Promise<Stage> {
    return new Stage(store, await stores[store].start?.(), join(directory, 'store'));
  }

  /** The way of one process to the store. */
  async connect(): Promise<{ readonly address: string; readonly proxy?: TestProxy }> {
    if (this.server === undefined) return { address: this.#directory };
    const proxy = await startProxy(this.server);
    this.#proxies.push(proxy);
    return { address: `${proxy.host}:${proxy.port}`, proxy };
  }

  get proxies(): readonly TestProxy[] {
    return this.#proxies;
  }

  async close(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    await this.server?.close();
  }
}
