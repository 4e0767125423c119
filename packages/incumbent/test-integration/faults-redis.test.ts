import { redisAvailable, startRedis } from '@incumbent/servers';
import { startProxy } from '@incumbent/zookeeper-testing';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { RedisClient } from '../src/backends/redis/index.ts';
import { redis } from '../src/backends/redis/index.ts';
import { describeFaults } from './support/fault-suite.ts';
import { faultTiming } from './support/fault-trial.ts';

interface Connected {
  readonly client: RedisClient;
  close(): Promise<unknown>;
}

async function nodeRedis(port: number): Promise<Connected> {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  client.on('error', () => {});
  await client.connect();
  return { client, close: async () => client.destroy() };
}

/** Commands without a reply are sent again when it has reconnected: they meet their own success. */
async function ioredis(port: number): Promise<Connected> {
  const client = new Redis({ port, lazyConnect: true });
  client.on('error', () => {});
  await client.connect();
  return { client, close: async () => client.disconnect() };
}

for (const [title, connect] of [
  ['Redis by node-redis', nodeRedis],
  ['Redis by ioredis', ioredis],
] as const) {
  describeFaults({
    title,
    missing: redisAvailable(),
    async start() {
      const server = await startRedis();
      return {
        timing: faultTiming(1_500),
        // Of all scripts only the one that writes is given a record.
        isWrite: (chunk) => Buffer.from(chunk).includes('"nonce":'),
        async connect() {
          const proxy = await startProxy(server);
          const { client, close } = await connect(proxy.port);
          return { backend: redis(client), proxy, close };
        },
        close: () => server.close(),
      };
    },
  });
}
