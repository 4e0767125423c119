/** One Redis for a test file, and clients of both libraries. */
import { randomUUID } from 'node:crypto';
import { redisAvailable } from '@incumbent/servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { RedisClient } from '../../src/backends/redis/index.ts';
import { systemClock } from '../../src/clock.ts';
import type { Scope } from '../../src/contest.ts';
import { resolveTiming } from '../../src/timing.ts';

/** Why no server can be had; in CI that is a failure. */
export const missing: string | undefined = redisAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

export const libraries = ['redis', 'ioredis'] as const;
export type Library = (typeof libraries)[number];

export interface OpenClient {
  readonly client: RedisClient;
  close(): void;
}

/** A connected client whose errors are nobody's. */
export async function openClient(
  library: Library,
  { port }: { readonly port: number },
  login: { readonly username?: string; readonly password?: string } = {},
): Promise<OpenClient> {
  if (library === 'ioredis') {
    const client = new Redis({ host: '127.0.0.1', port, ...login });
    client.on('error', () => {});
    return { client, close: () => client.disconnect() };
  }
  const client = createClient({ socket: { host: '127.0.0.1', port }, ...login });
  client.on('error', () => {});
  await client.connect();
  return {
    client,
    close: () => {
      if (client.isOpen) client.destroy();
    },
  };
}

/** What a store gets from an election. */
export function scopeOf(
  election: string,
  leaseMs = 1_000,
  onTrouble: Scope['onTrouble'] = () => {},
): Scope {
  return {
    election,
    clock: systemClock,
    timing: resolveTiming({ lease: leaseMs }),
    random: Math.random,
    uniqueId: randomUUID,
    onTrouble,
  };
}
