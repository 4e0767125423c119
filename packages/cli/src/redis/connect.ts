/** Our connection to Redis: one server, the primary that Sentinels name, or a cluster. */
import type { RedisClient } from 'incumbent/redis';
import type { RedisClientOptions, RedisClusterOptions, RedisSentinelOptions } from 'redis';
import type { StoreNeeds } from '../context.ts';
import { CommandError } from '../failure.ts';
import { UnusableStoreError } from '../unusable.ts';
import { endWithin, reach, reasonOf, unreachable, within } from '../url/reach.ts';
import type { Machine, SecretSource } from '../url/secrets.ts';
import { lineOf } from '../url/secrets.ts';
import type { TlsContents } from '../url/tls.ts';
import { readTlsFiles } from '../url/tls.ts';
import type { RedisLocation } from './url.ts';
import { hostWords } from './url.ts';

const closeTimeoutMs = 500;
/** The bound for later connections. The first one has the time that the command allows. */
const longestConnectMs = 5_000;
const longestPauseMs = 2_000;
const clientName = 'incumbent';

export type Reply = string | number | null | readonly Reply[];
type Send = (...words: readonly string[]) => Promise<Reply>;

export interface RedisConnections {
  readonly client: RedisClient;
  readonly location: RedisLocation;
  /** One command, to the primary; on a cluster to any node. */
  readonly send: Send;
  /** The same to each node that holds data: one, but on a cluster. */
  primaries(): Promise<readonly { readonly name: string; readonly send: Send }[]>;
  close(): Promise<void>;
}

interface Opened extends Omit<RedisConnections, 'location' | 'close'> {
  connect(): Promise<unknown>;
  close(): Promise<unknown>;
  destroy(): unknown;
}

/** @throws CommandError, UnusableStoreError that names host and reason */
export async function connectRedis(
  location: RedisLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<RedisConnections> {
  const { tls: names, origin } = location;
  const [tls] = await Promise.all([
    names && readTlsFiles(names, origin, machine, machine.env['INCUMBENT_REDIS_TLS_PASSPHRASE']),
    // A secret that is missing is found before the server is asked.
    location.password && lineOf(location.password, `password of ${origin}`, machine),
    location.sentinelPassword &&
      lineOf(location.sentinelPassword, `sentinel-password of ${origin}`, machine),
  ]);
  // Loaded before the time counts: on a busy machine that takes some, too.
  await import('redis');
  const known = { url: location.url, origin };
  const attempt = async (leftMs: number): Promise<Opened> => {
    const opened = await openRedis(location, tls, machine, leftMs);
    try {
      await within(leftMs, needs.signal, opened.connect());
      await within(leftMs, needs.signal, opened.send('PING'));
      return opened;
    } catch (error) {
      discard(opened);
      throw error;
    }
  };
  let opened: Opened;
  try {
    opened = await reach(needs, attempt, (error) => credentialProblem(error) === undefined);
  } catch (error) {
    needs.signal.throwIfAborted();
    if (error instanceof CommandError) throw error;
    const problem = credentialProblem(error);
    if (problem === undefined) {
      throw unreachable(nameOf(location), error, needs, known, hintOf(location, error));
    }
    throw new UnusableStoreError('AUTH_FAILED', `${nameOf(location)} ${problem}`, known, {
      cause: error,
    });
  }
  const { client, send } = opened;
  return {
    client,
    location,
    send,
    primaries: () => opened.primaries(),
    async close() {
      await endWithin(closeTimeoutMs, () => opened.close());
      discard(opened);
    },
  };
}

function discard(opened: Opened): void {
  try {
    // That of a Sentinel returns a promise.
    Promise.resolve(opened.destroy()).catch(() => {});
  } catch {
    // It was not open, or not any more.
  }
}

async function openRedis(
  location: RedisLocation,
  tls: TlsContents | undefined,
  machine: Machine,
  connectMs: number,
): Promise<Opened> {
  const { createClient, createCluster, createSentinel } = await import('redis');
  const { hosts, origin, database } = location;
  let hasConnected = false;
  // The first attempt fails at once, with its reason. Once connected, the client reconnects for
  // ever.
  const reconnectStrategy = (retries: number, cause: Error) =>
    hasConnected ? Math.min(50 * 2 ** Math.min(retries, 10), longestPauseMs) : cause;
  const socket = {
    connectTimeout: Math.max(1, Math.round(Math.min(connectMs, longestConnectMs))),
    reconnectStrategy,
    ...(tls === undefined ? {} : { tls: true as const, ...tls }),
  };
  const common = {
    name: clientName,
    // A command that could not be sent is known not to have run, and its caller tries it again.
    disableOfflineQueue: true,
  };
  const who = await credentials(location.user, location.password, `password of ${origin}`, machine);
  const options = { ...common, ...who, database };
  const settled = async (connecting: Promise<unknown>) => {
    await connecting;
    hasConnected = true;
  };
  if (location.kind === 'cluster') {
    const cluster = createCluster({
      rootNodes: hosts.map(({ host, port }) => ({ socket: { ...socket, host, port } })),
      defaults: { ...common, ...who, socket },
    } as RedisClusterOptions);
    // The driver rejects with a message that only says that all nodes failed.
    let latest: unknown;
    cluster.on('error', (error: unknown) => {
      latest = error;
    });
    return {
      client: cluster as unknown as RedisClient,
      send: async (...words) =>
        (await cluster.sendCommand(undefined, false, [...words])) as unknown as Reply,
      primaries: () =>
        Promise.all(
          cluster.masters.map(async (node) => {
            const each = await cluster.nodeClient(node);
            const send: Send = async (...words) =>
              (await each.sendCommand([...words])) as unknown as Reply;
            return { name: node.address, send };
          }),
        ),
      connect: () =>
        settled(cluster.connect()).catch((error: unknown) => {
          throw latest ?? error;
        }),
      close: () => cluster.close(),
      destroy: () => cluster.destroy(),
    };
  }
  if (location.kind === 'sentinel') {
    const { sentinelUser, sentinelPassword } = location;
    const what = `sentinel-password of ${origin}`;
    const sentinel = createSentinel({
      name: location.master ?? '',
      sentinelRootNodes: hosts.map(({ host, port }) => ({ host, port })),
      nodeClientOptions: { ...options, socket },
      sentinelClientOptions: {
        ...common,
        ...(await credentials(sentinelUser, sentinelPassword, what, machine)),
        socket,
      },
    } as RedisSentinelOptions);
    // The driver would retry for minutes. A patient command retries by itself.
    const inVain = new Promise<never>((_resolve, reject) => {
      let failures = 0;
      sentinel.on('error', (error: unknown) => {
        // It tells of each Sentinel once by an error, and more than once in words.
        if (error instanceof Error) failures += 1;
        if (failures === hosts.length) reject(error);
      });
    });
    inVain.catch(() => {});
    const send: Send = async (...words) =>
      (await sentinel.sendCommand(false, [...words])) as unknown as Reply;
    return {
      client: sentinel as unknown as RedisClient,
      send,
      primaries: async () => [{ name: location.master ?? '', send }],
      connect: () => settled(Promise.race([sentinel.connect(), inVain])),
      close: () => sentinel.close(),
      destroy: () => sentinel.destroy(),
    };
  }
  const [{ host, port } = { host: 'localhost', port: 6379 }] = hosts;
  const client = createClient({
    ...options,
    socket: { ...socket, host, port },
  } as RedisClientOptions);
  client.on('error', () => {});
  const send: Send = async (...words) => (await client.sendCommand([...words])) as unknown as Reply;
  return {
    client: client as unknown as RedisClient,
    send,
    primaries: async () => [{ name: hostWords(location), send }],
    connect: () => settled(client.connect()),
    close: () => client.close(),
    destroy: () => client.destroy(),
  };
}

/** Read anew for every connection: passwords in files are replaced. */
async function credentials(
  username: string | undefined,
  source: SecretSource | undefined,
  what: string,
  machine: Machine,
): Promise<Pick<RedisClientOptions, 'username' | 'password' | 'credentialsProvider'>> {
  if (source === undefined) return username === undefined ? {} : { username };
  if (source.kind !== 'file') {
    return {
      ...(username === undefined ? {} : { username }),
      password: await lineOf(source, what, machine),
    };
  }
  return {
    credentialsProvider: {
      type: 'async-credentials-provider',
      credentials: async () => ({
        username: username ?? 'default',
        password: await lineOf(source, what, machine),
      }),
    },
  };
}

/** Translates a refusal of our credentials; undefined: the error has another cause. */
function credentialProblem(error: unknown): string | undefined {
  const said = reasonOf(error);
  if (/NOAUTH/.test(said)) {
    return (
      `wants a password (${said}): set REDIS_PASSWORD or REDISCLI_AUTH, or add password=env:NAME or ` +
      'password=file:/PATH'
    );
  }
  if (/WRONGPASS|invalid password|without any password configured/i.test(said)) {
    return (
      `does not take our credentials (${said}): look at REDIS_USERNAME, REDIS_PASSWORD and ` +
      'REDISCLI_AUTH, and at user and password of the URL'
    );
  }
  return undefined;
}

function hintOf({ kind, tls }: RedisLocation, error: unknown): string {
  const said = reasonOf(error);
  if (/certificate|CERT|ALTNAME/i.test(said)) return '; tls-ca names whom to trust';
  if (tls === undefined && /closed unexpectedly|ECONNRESET|protocol/i.test(said)) {
    return '; a server that speaks TLS there wants rediss://';
  }
  if (tls !== undefined && /timeout|does not answer/i.test(said)) {
    return '; a server that speaks no TLS there wants redis://';
  }
  if (kind === 'cluster' && /cluster support disabled/i.test(said)) {
    return '; for a single server leave cluster=true out';
  }
  return '';
}

export function nameOf(location: RedisLocation): string {
  const hosts = hostWords(location);
  if (location.kind === 'sentinel') return `Redis master ${location.master} of Sentinels ${hosts}`;
  return location.kind === 'cluster' ? `the Redis cluster at ${hosts}` : `Redis at ${hosts}`;
}
