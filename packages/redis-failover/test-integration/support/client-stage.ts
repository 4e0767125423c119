/** ZooKeeper, Redis nodes, clients of both libraries, and a manager that the test plays. */
import type { RedisServer, RedisServerOptions } from '@incumbent/servers';
import { redisAvailable, startRedis } from '@incumbent/servers';
import type { ZooKeeper } from '@incumbent/zookeeper';
import { connect } from '@incumbent/zookeeper';
import type { TestProxy, TestServer } from '@incumbent/zookeeper-testing';
import { serverAvailable, startProxy, startServer } from '@incumbent/zookeeper-testing';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { TestContext } from 'vitest';
import { afterAll, beforeAll } from 'vitest';
import type { ClientHooks } from '../../src/client/failover.ts';
import type { RedisFailoverOptions } from '../../src/client/options.ts';
import { ioredis, nodeRedis, RedisFailover } from '../../src/index.ts';
import type { Nodes, PrimaryRecord } from '../../src/layout.ts';
import { encodeNodes, encodePrimary, pathsBelow } from '../../src/layout.ts';

export const missing: string | undefined = redisAvailable() ?? serverAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

export const libraries = ['redis', 'ioredis'] as const;
export type Library = (typeof libraries)[number];

/** The methods that both libraries have under one name. */
export interface CommonClient {
  get(key: string): Promise<string | null>;
  set(key: string, value: string): Promise<unknown>;
  incr(key: string): Promise<number>;
  readonly isReady: boolean;
}

/** A command by its words, in either library. */
export async function raw(client: object, ...words: string[]): Promise<unknown> {
  const { sendCommand, call } = client as Record<string, (...args: unknown[]) => Promise<unknown>>;
  return call === undefined ? sendCommand?.call(client, words) : call.call(client, ...words);
}

/** The state of a promise so far. A rejection does not count as unhandled then. */
export function watched<T>(promise: Promise<T>): {
  readonly promise: Promise<T>;
  settled: boolean;
} {
  const watch = { promise, settled: false };
  const settle = () => {
    watch.settled = true;
  };
  promise.then(settle, settle);
  return watch;
}

/** One primary and its replicas for the whole file. */
export interface Servers {
  readonly zookeeper: TestServer;
  readonly nodes: readonly RedisServer[];
}

export function useServers(nodes: number): Servers {
  let zookeeper: TestServer | undefined;
  const started: RedisServer[] = [];
  beforeAll(async () => {
    if (missing !== undefined) return;
    const starting = startServer({ tickTimeMs: 500 });
    const primary = await startRedis();
    started.push(primary);
    const replicas = Array.from({ length: nodes - 1 }, () => startRedis({ replicaOf: primary }));
    started.push(...(await Promise.all(replicas)));
    zookeeper = await starting;
  });
  afterAll(async () => {
    await Promise.all([zookeeper?.close(), ...started.map((server) => server.close())]);
  });
  return {
    get zookeeper() {
      return zookeeper as TestServer;
    },
    nodes: started,
  };
}

export function addressOf({ port }: { readonly port: number }): string {
  return `127.0.0.1:${port}`;
}

let roots = 0;

/** The clients and servers of one test, on a root of its own. */
export class ClientStage {
  readonly root: string;
  readonly zk: ZooKeeper;
  readonly #servers: Servers;
  readonly #context: TestContext;
  term = 0;

  static async open(servers: Servers, context: TestContext): Promise<ClientStage> {
    const zk = await connect(servers.zookeeper.connectionString, { sessionTimeoutMs: 10_000 });
    context.onTestFinished(() => zk.close());
    roots += 1;
    const stage = new ClientStage(servers, context, zk, `/redis_failover_${roots}`);
    await zk.ensurePath(stage.root);
    return stage;
  }

  private constructor(servers: Servers, context: TestContext, zk: ZooKeeper, root: string) {
    this.#servers = servers;
    this.#context = context;
    this.zk = zk;
    this.root = root;
  }

  /** Publishes a primary as a manager does: both znodes in one transaction. */
  async publish(
    primary: string,
    replicas: readonly string[] = [],
    more: { readonly viewMs?: number; readonly runId?: string } = {},
  ): Promise<void> {
    const { viewMs = 1_000, runId = null } = more;
    this.term += 1;
    const { primary: record, nodes } = pathsBelow(this.root);
    const value = { ...this.#record({ primary, former: null, viewMs }), runId };
    const names: Nodes = { master: primary, slaves: replicas, unavailable: [] };
    const transaction = this.zk.transaction();
    if (await this.zk.exists(record)) transaction.set(record, encodePrimary(value));
    else transaction.create(record, encodePrimary(value));
    if (await this.zk.exists(nodes)) transaction.delete(nodes);
    await transaction.create(nodes, encodeNodes(names)).commit();
  }

  /**
   * Accepts a primary that was started anew, as a manager does that has looked at it. The term
   * stays.
   */
  async accept(primary: string, runId: string): Promise<void> {
    const { primary: path } = pathsBelow(this.root);
    const value = { ...this.#record({ primary, former: null, viewMs: 1_000 }), runId };
    await this.zk.set(path, encodePrimary(value));
  }

  /**
   * Revokes the primary as a manager does: in one transaction both znodes show that there is none.
   */
  async revoke(
    former: string,
    { viewMs = 1_000 }: { readonly viewMs?: number } = {},
  ): Promise<void> {
    const { primary: record, nodes } = pathsBelow(this.root);
    const value = this.#record({ primary: null, former, viewMs });
    await this.zk.transaction().set(record, encodePrimary(value)).delete(nodes).commit();
  }

  /** Publishes a primary as a Ruby manager does, which knows only `nodes`. */
  async publishAsRuby(primary: string, replicas: readonly string[] = []): Promise<void> {
    const { nodes } = pathsBelow(this.root);
    const data = encodeNodes({ master: primary, slaves: replicas, unavailable: [] });
    if (await this.zk.exists(nodes)) await this.zk.delete(nodes);
    await this.zk.create(nodes, data);
  }

  async client(
    library: Library,
    options: Partial<Omit<RedisFailoverOptions<object>, 'redis'>> & {
      readonly driver?: object;
    } = {},
    hooks: ClientHooks = {},
  ): Promise<RedisFailover<CommonClient>> {
    const { driver = {}, ...rest } = options;
    const redis = library === 'redis' ? nodeRedis(createClient, driver) : ioredis(Redis, driver);
    const failover = await RedisFailover.connect(
      {
        zookeeper: this.#servers.zookeeper.connectionString,
        root: this.root,
        ...rest,
        redis: redis as unknown as RedisFailoverOptions<CommonClient>['redis'],
      },
      hooks,
    );
    this.#context.onTestFinished(() => failover.close());
    return failover;
  }

  /** A proxy in front of a server, for this test. */
  async proxy(target: { readonly port: number }): Promise<TestProxy> {
    const proxy = await startProxy(target);
    this.#context.onTestFinished(() => proxy.close());
    return proxy;
  }

  /** A Redis for this test alone, so the test may change its role. */
  async redis(options?: RedisServerOptions): Promise<RedisServer> {
    const server = await startRedis(options);
    this.#context.onTestFinished(() => server.close());
    return server;
  }

  #record(of: Pick<PrimaryRecord, 'primary' | 'former' | 'viewMs'>): PrimaryRecord {
    const rest = {
      manager: 'by hand',
      token: '1',
      manualSeen: '0',
      replicationId: null,
      runId: null,
      gemViews: false,
    };
    return { ...rest, ...of, term: this.term };
  }
}
