/** Elections in Redis or Valkey, on the client that the program has anyway. */
import type { Backend } from '../../core/contest.ts';
import { leaseBackend } from '../../mechanisms/lease/backend.ts';
import { readEach } from '../../mechanisms/lease/read-all.ts';
import type { RedisClient } from './client.ts';
import type { RedisGuard } from './guard.ts';
import { redisGuard } from './guard.ts';
import { openRedis } from './open.ts';
import type { RedisOptions } from './options.ts';
import type { RedisLeaseStore } from './store.ts';

export type {
  CommandOptions,
  IoRedisClient,
  IoRedisCluster,
  IoRedisSubscriber,
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisPool,
  NodeRedisSentinel,
  NodeRedisSubscriber,
  RedisClient,
} from './client.ts';
export { fenceIn, type RedisGuard } from './guard.ts';
export type { RedisOptions } from './options.ts';
export { fenceLua } from './scripts.ts';

/**
 * A backend that holds elections in Redis. One client serves any number of them. Its owner connects
 * and closes it. While candidates or observers wait, a copy of the client listens for wake-ups. It
 * is closed when the last of them stops.
 *
 * Redis may lose writes that it has confirmed: when it is started again, and when a replica takes
 * over. The page docs/stores/redis.md says how that affects the promises of an election. It also
 * says what to do about it.
 *
 * @param client of the package `redis` (createClient, createClientPool, createCluster,
 * createSentinel) or `ioredis` (Redis, Cluster)
 * @throws InvalidOptionError
 */
export function redis(client: RedisClient, options: RedisOptions = {}): Backend<RedisGuard> {
  const { driver, prefix, openStore, openLease, lister } = openRedis(client, options);
  return leaseBackend<RedisGuard>({
    kind: 'redis',
    description: `${driver.description} (${prefix}…)`,
    openStore,
    list: lister,
    // The clients send them one behind the other, and do not wait for answers.
    leases: { open: openLease, readAll: readEach(Number.POSITIVE_INFINITY) },
    guard: (scope, store, token) => {
      const { key, newestToken } = store as RedisLeaseStore;
      return redisGuard(driver, scope.election, key, token, newestToken);
    },
  });
}
