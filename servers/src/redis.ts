/** Redis servers, alone, with replicas, behind a Sentinel, or as a cluster. */
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestCertificates } from '@incumbent/zookeeper-testing';
import { freePorts } from '@incumbent/zookeeper-testing';
import type { LocalServerPlan } from './local-server.ts';
import { LocalServer, makeServerDirectory, waitFor } from './local-server.ts';
import type { RespValue } from './resp.ts';
import { respCommand } from './resp.ts';

export interface RedisServerOptions {
  /** Default: a free one. */
  readonly port?: number;
  /** Default: nothing is written to disk, so a server that is started again is empty. */
  readonly appendFsync?: 'always' | 'everysec' | 'no';
  readonly replicaOf?: { readonly port: number };
  /** Only TLS is spoken then, and certificates of clients are not asked for. */
  readonly tls?: TestCertificates;
  /** Any others, such as `['--maxmemory', '1mb']`. */
  readonly arguments?: readonly string[];
}

/** Why no Redis can be started here; undefined when it can. */
export function redisAvailable(): string | undefined {
  const { status } = spawnSync('redis-server', ['--version'], { stdio: 'ignore' });
  return status === 0 ? undefined : 'redis-server is not installed (apt-get install redis-server)';
}

/** A Redis process. `kill` and `start` keep what is on its disk, which by default is nothing. */
export class RedisServer extends LocalServer {
  readonly port: number;
  readonly #tls: boolean;

  constructor(plan: LocalServerPlan, port: number, tls: boolean) {
    super(plan);
    this.port = port;
    this.#tls = tls;
  }

  /** `redis://127.0.0.1:port`, `rediss:` with TLS. */
  get url(): string {
    return `${this.#tls ? 'rediss' : 'redis'}://127.0.0.1:${this.port}`;
  }

  /** One command on a connection of its own. Rejects with what the server says. */
  command(...parts: (string | number)[]): Promise<RespValue> {
    return respCommand({ port: this.port, tls: this.#tls }, parts);
  }

  /** Makes a replica a primary. */
  async promote(): Promise<void> {
    await this.command('REPLICAOF', 'NO', 'ONE');
  }

  /** Makes it a replica, and waits until it has what the primary has. */
  async follow(primary: { readonly port: number }): Promise<void> {
    await this.command('REPLICAOF', '127.0.0.1', primary.port);
    await this.linked();
  }

  /** Resolves when a replica is connected to its primary. */
  async linked(): Promise<void> {
    await waitFor('the replica is linked', async () => {
      const replication = await this.command('INFO', 'replication');
      return String(replication).includes('master_link_status:up');
    });
  }
}

/**
 * Resolves when replicas are given what their primary writes. A replica that took a whole copy gets
 * nothing more before its next report, up to a second later. And yet it counts for
 * min-replicas-to-write, so writes of that second are lost with the primary.
 */
export async function replicasStream(
  primary: RedisServer,
  replicas: readonly RedisServer[],
): Promise<void> {
  const offset = async (server: RedisServer) =>
    /master_repl_offset:(\d+)/.exec(String(await server.command('INFO', 'replication')))?.[1];
  // Something that is replicated, and leaves no key.
  await primary.command('PUBLISH', 'begin', '');
  for (const replica of replicas) {
    await waitFor('the replica has what was published', async () => {
      return (await offset(replica)) === (await offset(primary));
    });
  }
}

export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const port = options.port ?? ((await freePorts(1))[0] as number);
  const directory = await makeServerDirectory('redis');
  const { replicaOf, tls } = options;
  const isReady = async () =>
    (await respCommand({ port, tls: tls !== undefined }, ['PING'])) !== '';
  const server = new RedisServer(
    {
      program: 'redis-server',
      directory,
      isReady: async () => isReady().catch(isRefusal),
      arguments: [
        ...['--bind', '127.0.0.1', '--dir', directory, '--save', '', '--loglevel', 'warning'],
        ...(tls === undefined ? ['--port', `${port}`] : tlsArguments(port, tls)),
        ...(options.appendFsync === undefined
          ? ['--appendonly', 'no']
          : ['--appendonly', 'yes', '--appendfsync', options.appendFsync]),
        // Replicas are there at once, instead of after 5 s.
        ...['--repl-diskless-sync-delay', '0'],
        ...(replicaOf === undefined ? [] : ['--replicaof', `127.0.0.1 ${replicaOf.port}`]),
        ...(options.arguments ?? []),
      ],
    },
    port,
    tls !== undefined,
  );
  await server.start();
  if (replicaOf !== undefined) await server.linked();
  return server;
}

/** It answers, if only to say that one has to log in first. */
function isRefusal(error: Error): boolean {
  return error.message.startsWith('NOAUTH');
}

function tlsArguments(port: number, { ca, server }: TestCertificates): string[] {
  return [
    ...['--port', '0', '--tls-port', `${port}`, '--tls-auth-clients', 'no'],
    ...['--tls-cert-file', server.certificate.path, '--tls-key-file', server.key.path],
    ...['--tls-ca-cert-file', ca.path],
  ];
}

export interface SentinelOptions {
  readonly primary: { readonly port: number };
  /** The name that clients ask for. Default `incumbent`. */
  readonly name?: string;
  /** How long the primary is silent before it counts as gone. Default 500. */
  readonly downAfterMs?: number;
}

/** One Sentinel, which decides alone. */
export async function startSentinel(options: SentinelOptions): Promise<RedisServer> {
  const { primary, name = 'incumbent', downAfterMs = 500 } = options;
  const [port] = (await freePorts(1)) as [number];
  const directory = await makeServerDirectory('sentinel');
  const configuration = join(directory, 'sentinel.conf');
  await writeFile(
    configuration,
    [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${directory}`,
      `sentinel monitor ${name} 127.0.0.1 ${primary.port} 1`,
      `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
      `sentinel failover-timeout ${name} 10000`,
      '',
    ].join('\n'),
  );
  const sentinel = new RedisServer(
    {
      program: 'redis-server',
      directory,
      arguments: [configuration, '--sentinel'],
      isReady: async () => (await respCommand({ port }, ['PING'])) !== '',
    },
    port,
    false,
  );
  await sentinel.start();
  // Before it has heard of a replica it has nobody to promote.
  await waitFor('the Sentinel knows a replica', async () => {
    const replicas = await sentinel.command('SENTINEL', 'REPLICAS', name);
    return Array.isArray(replicas) && replicas.length > 0;
  });
  return sentinel;
}

/** A cluster of primaries that share the 16,384 slots. The caller closes each of them. */
export async function startRedisCluster(size = 3): Promise<readonly RedisServer[]> {
  const servers = await Promise.all(
    Array.from({ length: size }, async () => {
      const [busPort] = await freePorts(1);
      return startRedis({
        arguments: ['--cluster-enabled', 'yes', '--cluster-port', `${busPort}`],
      });
    }),
  );
  try {
    const [first] = servers as [RedisServer];
    for (const [index, server] of servers.entries()) {
      const from = Math.floor((index * 16_384) / size);
      const to = Math.floor(((index + 1) * 16_384) / size) - 1;
      await server.command('CLUSTER', 'ADDSLOTSRANGE', from, to);
      if (server === first) continue;
      const configuration = await server.command('CONFIG', 'GET', 'cluster-port');
      const busPort = (configuration as readonly string[])[1] as string;
      await first.command('CLUSTER', 'MEET', '127.0.0.1', server.port, busPort);
    }
    for (const server of servers) {
      await waitFor('the cluster has come together', async () => {
        const state = String(await server.command('CLUSTER', 'INFO'));
        return state.includes('cluster_state:ok') && state.includes(`cluster_known_nodes:${size}`);
      });
    }
    return servers;
  } catch (error) {
    await Promise.all(servers.map((server) => server.close()));
    throw error;
  }
}
