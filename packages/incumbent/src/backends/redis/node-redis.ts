import type { HintConnection } from '../hint-hub.ts';
import type {
  CommandOptions,
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisPool,
  NodeRedisSentinel,
  NodeRedisSubscriber,
} from './client.ts';
import type { RedisDriver, Send } from './driver.ts';

export type NodeRedis =
  | { readonly kind: 'client'; readonly client: NodeRedisClient }
  | { readonly kind: 'pool'; readonly client: NodeRedisPool }
  | { readonly kind: 'cluster'; readonly client: NodeRedisCluster }
  | { readonly kind: 'sentinel'; readonly client: NodeRedisSentinel };

/** The package `redis` ("node-redis"). */
export function nodeRedisDriver(node: NodeRedis): RedisDriver {
  return {
    description: describe(node),
    // The library writes it before the keys of its own methods only, and not with sendCommand.
    ownPrefix: keyPrefixOf(node.client),
    clientPrefix: '',
    send(key, args, signal) {
      // A command that is not sent yet can be taken back.
      const options = signal === undefined ? {} : { abortSignal: signal };
      return sendBy(node, key, args, options);
    },
    together: together(node),
    primaries: () => primaries(node),
    subscribe: async (channel, onMessage, onLost) =>
      subscribe(await copyOf(node), channel, onMessage, onLost),
  };
}

function sendBy(
  node: NodeRedis,
  key: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<unknown> {
  switch (node.kind) {
    case 'client':
    case 'pool':
      return node.client.sendCommand([...args], options);
    case 'cluster':
      return node.client.sendCommand(key, false, [...args], options);
    case 'sentinel':
      return node.client.sendCommand(false, [...args], options);
    default:
      return node satisfies never;
  }
}

function together(node: NodeRedis): RedisDriver['together'] {
  switch (node.kind) {
    case 'client':
      return (job) => job((args) => node.client.sendCommand([...args]));
    case 'pool':
      return <T>(job: (send: Send) => Promise<T>) =>
        node.client.execute((client) => job((args) => client.sendCommand([...args]))) as Promise<T>;
    case 'sentinel':
      return (job) =>
        node.client.use((client) => job((args) => client.sendCommand(false, [...args])));
    case 'cluster':
      return undefined;
    default:
      return node satisfies never;
  }
}

async function primaries(node: NodeRedis): Promise<readonly Send[]> {
  if (node.kind !== 'cluster') return [(args) => sendBy(node, '', args, {})];
  const { client } = node;
  const nodes = await Promise.all(client.masters.map(async (each) => client.nodeClient(each)));
  return nodes.map((each) => (args) => each.sendCommand([...args]));
}

async function copyOf(node: NodeRedis): Promise<NodeRedisSubscriber> {
  if (node.kind !== 'pool') return node.client.duplicate();
  return node.client.execute((client) => client.duplicate());
}

async function subscribe(
  copy: NodeRedisSubscriber,
  channel: string,
  onMessage: (message: string) => void,
  onLost: (error?: unknown) => void,
): Promise<HintConnection> {
  // Otherwise it would try again for ever, and keep the process alive. A listener that still waits
  // opens another copy.
  const end = () => {
    try {
      // The one of a Sentinel returns a promise.
      Promise.resolve(copy.destroy()).catch(() => {});
    } catch {
      // It was not open yet, or not any more.
    }
  };
  const failed = new Promise<never>((_resolve, reject) => {
    const fail = (error?: unknown) => {
      onLost(error);
      end();
      reject(error);
    };
    copy.on('error', fail);
    copy.on('end', () => fail(new Error('the connection was closed')));
  });
  failed.catch(() => {});
  // Hints alone keep no process alive.
  copy.unref?.();
  const opened = (async () => {
    await copy.connect();
    await copy.subscribe(channel, (message) => onMessage(String(message)));
  })();
  try {
    await Promise.race([opened, failed]);
  } catch (error) {
    opened.catch(() => {});
    end();
    throw error;
  }
  return { close: end };
}

function keyPrefixOf(client: object): string {
  const prefix = optionsOf(client)?.['keyPrefix'];
  return prefix === undefined ? '' : String(prefix);
}

function optionsOf(client: object): Record<string, unknown> | undefined {
  return (client as { options?: Record<string, unknown> }).options;
}

function describe({ kind, client }: NodeRedis): string {
  if (kind === 'cluster') return 'a Redis cluster';
  if (kind === 'sentinel') return 'Redis behind Sentinels';
  const socket = optionsOf(client)?.['socket'] as Record<string, unknown> | undefined;
  if (typeof socket?.['path'] === 'string') return `redis+unix:${socket['path']}`;
  const scheme = socket?.['tls'] === true ? 'rediss' : 'redis';
  return `${scheme}://${socket?.['host'] ?? 'localhost'}:${socket?.['port'] ?? 6379}`;
}
