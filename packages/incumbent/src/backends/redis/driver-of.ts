import { describeClient } from '../../base/candidate.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type {
  IoRedisClient,
  IoRedisCluster,
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisPool,
  NodeRedisSentinel,
  RedisClient,
} from './client.ts';
import type { RedisDriver } from './driver.ts';
import { ioRedisDriver } from './ioredis.ts';
import { nodeRedisDriver } from './node-redis.ts';

/** @throws InvalidOptionError for a value that is no client */
export function driverOf(client: RedisClient): RedisDriver {
  const shape = (typeof client === 'object' || typeof client === 'function') && client;
  if (!shape) throw notAClient(`not ${describeClient(client)}`);
  const has = (...names: string[]) =>
    names.every((name) => typeof (client as never)[name] === 'function');
  if (has('call', 'duplicate') && typeof (client as IoRedisClient).status === 'string') {
    return ioRedisDriver(client as IoRedisClient | IoRedisCluster);
  }
  if (has('sendCommand') && typeof (client as NodeRedisClient).isOpen === 'boolean') {
    if (has('getSentinelNode', 'use')) {
      return nodeRedisDriver({ kind: 'sentinel', client: client as NodeRedisSentinel });
    }
    if (has('getSlotRandomNode')) {
      return nodeRedisDriver({ kind: 'cluster', client: client as NodeRedisCluster });
    }
    if (has('execute') && 'totalClients' in client) {
      return nodeRedisDriver({ kind: 'pool', client: client as NodeRedisPool });
    }
    if (has('duplicate')) {
      return nodeRedisDriver({ kind: 'client', client: client as NodeRedisClient });
    }
  }
  if (has('send_command') || has('internal_send_command') || has('sendCommand')) {
    throw notAClient('not the callback client of redis 3 or what legacy() makes');
  }
  if (has('then')) throw notAClient('not a promise of one: await it');
  throw notAClient(`not ${describeClient(client)}`);
}

function notAClient(what: string): InvalidOptionError {
  return new InvalidOptionError(
    'redis() takes a client of the package "redis" (createClient, createClientPool, createCluster, ' +
      `createSentinel) or of "ioredis" (Redis, Cluster), ${what}`,
  );
}
