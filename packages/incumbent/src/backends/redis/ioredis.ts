import type { HintConnection } from '../hint-hub.ts';
import type { IoRedisClient, IoRedisCluster, IoRedisSubscriber } from './client.ts';
import type { RedisDriver, Send } from './driver.ts';

/**
 * The value of version 6. It is below the usual time after which idle connections are forgotten.
 */
const keepAliveMs = 30_000;

/** The package `ioredis`, and those made after it (iovalkey). */
export function ioRedisDriver(client: IoRedisClient | IoRedisCluster): RedisDriver {
  const options = (client as { options?: Record<string, unknown> }).options ?? {};
  const send = sendBy(client);
  return {
    description: describe(client, options),
    ownPrefix: '',
    clientPrefix: options['keyPrefix'] === undefined ? '' : String(options['keyPrefix']),
    send: (_key, args) => send(args),
    together: isCluster(client) ? undefined : (job) => job(send),
    primaries: async () =>
      isCluster(client)
        ? client.nodes('master').map((node) => sendBy(node as IoRedisClient))
        : [send],
    subscribe: (channel, onMessage, onLost) =>
      subscribe(copyOf(client, options), channel, onMessage, onLost),
  };
}

function sendBy(client: Pick<IoRedisClient, 'call'>): Send {
  return (args) => {
    const [command = '', ...rest] = args;
    // By a lower-case name the client finds a command's keys, to route it and to write its
    // prefix before them.
    return client.call(command.toLowerCase(), ...rest);
  };
}

function isCluster(client: IoRedisClient | IoRedisCluster): client is IoRedisCluster {
  return client.isCluster;
}

/** Connects once. A listener that still waits opens another copy. */
function copyOf(
  client: IoRedisClient | IoRedisCluster,
  options: Record<string, unknown>,
): IoRedisSubscriber {
  const once = { lazyConnect: true, enableOfflineQueue: true };
  const never = () => null;
  if (isCluster(client)) return client.duplicate([], { ...once, clusterRetryStrategy: never });
  return client.duplicate({
    ...once,
    retryStrategy: never,
    sentinelRetryStrategy: never,
    autoResubscribe: false,
    // Nothing is sent on it for hours, and routers in between forget such connections. Version 5
    // sends no such probes unless told to.
    keepAlive: Number(options['keepAlive']) || keepAliveMs,
  });
}

async function subscribe(
  copy: IoRedisSubscriber,
  channel: string,
  onMessage: (message: string) => void,
  onLost: (error?: unknown) => void,
): Promise<HintConnection> {
  const failed = new Promise<never>((_resolve, reject) => {
    const fail = (error: unknown) => {
      onLost(error);
      copy.disconnect();
      reject(error);
    };
    copy.on('error', fail);
    copy.on('end', () => fail(new Error('the connection was closed')));
  });
  failed.catch(() => {});
  copy.on('message', (_channel, message) => onMessage(String(message)));
  const opened = (async () => {
    await copy.connect();
    // Hints alone keep no process alive.
    (copy as { stream?: { unref?(): void } }).stream?.unref?.();
    await copy.subscribe(channel);
  })();
  try {
    await Promise.race([opened, failed]);
  } catch (error) {
    opened.catch(() => {});
    copy.disconnect();
    throw error;
  }
  return { close: () => copy.disconnect() };
}

function describe(
  client: IoRedisClient | IoRedisCluster,
  options: Record<string, unknown>,
): string {
  if (isCluster(client)) return 'a Redis cluster';
  if (Array.isArray(options['sentinels'])) return 'Redis behind Sentinels';
  if (typeof options['path'] === 'string') return `redis+unix:${options['path']}`;
  const scheme = options['tls'] === undefined ? 'redis' : 'rediss';
  return `${scheme}://${options['host'] ?? 'localhost'}:${options['port'] ?? 6379}`;
}
