import { describeClient } from '../../candidate.ts';
import { InvalidOptionError } from '../../errors.ts';
import type { HintConnection } from '../hint-hub.ts';
import type {
  IoRedisClient,
  IoRedisCluster,
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisPool,
  NodeRedisSentinel,
  RedisClient,
} from './client.ts';
import { ioRedisDriver } from './ioredis.ts';
import { nodeRedisDriver } from './node-redis.ts';

/** Sends one command, the first word of `args`. */
export type Send = (args: readonly string[]) => Promise<unknown>;

/** The two client libraries, seen alike. */
export interface RedisDriver {
  /** Where it leads, for people, without secrets. */
  readonly description: string;
  /** What the client's owner wants before every key, and has not: we write it ourselves. */
  readonly ownPrefix: string;
  /** What the client writes before every key by itself. */
  readonly clientPrefix: string;
  /** @param key decides which node of a cluster it is sent to; one of the command's keys */
  send(key: string, args: readonly string[], signal?: AbortSignal): Promise<unknown>;
  /**
   * All that `job` sends goes to one server, and over one connection unless the client reconnects
   * meanwhile. Undefined for a cluster, where a command without a key goes to any node.
   */
  readonly together: (<T>(job: (send: Send) => Promise<T>) => Promise<T>) | undefined;
  /** Subscribes on a connection of its own: a copy of the client, made as the client was. */
  subscribe(
    channel: string,
    onMessage: (message: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<HintConnection>;
}

/** @throws InvalidOptionError for what is no client */
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
