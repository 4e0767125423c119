import { redis } from 'incumbent/redis';
import type { OpenStore, StoreNeeds } from '../context.ts';
import type { Machine } from '../url/secrets.ts';
import { connectRedis } from './connect.ts';
import type { RedisLocation } from './url.ts';

/**
 * Connects, and makes sure that the server answers.
 * @throws CommandError that names the hosts and the fault; UnusableStoreError
 */
export async function openRedis(
  location: RedisLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<OpenStore> {
  const connections = await connectRedis(location, needs, machine);
  const { client, close } = connections;
  try {
    return {
      url: location.url,
      origin: location.origin,
      backend: redis(client, location.options),
      servers: {
        async examine({ timing, signal }) {
          const { examineRedis } = await import('../doctor/redis.ts');
          return examineRedis(connections, timing, signal);
        },
        async scratch(unique) {
          const { scratchOnRedis } = await import('../doctor/redis.ts');
          return scratchOnRedis(unique, connections);
        },
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
