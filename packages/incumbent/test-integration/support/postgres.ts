import { randomUUID } from 'node:crypto';
import { pgBouncerAvailable, postgresAvailable } from '@incumbent/servers';
import pg from 'pg';
import postgresJs from 'postgres';
import type { PostgresClient } from '../../src/backends/postgres/index.ts';
import { systemClock } from '../../src/clock.ts';
import type { Scope } from '../../src/contest.ts';
import { resolveTiming } from '../../src/timing.ts';

/** Why no server can be had; in CI that is a failure. */
export const missing: string | undefined = postgresAvailable() ?? pgBouncerAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

export const drivers = ['pg', 'postgres'] as const;
export type DriverName = (typeof drivers)[number];

export interface OpenClient {
  readonly client: PostgresClient;
  close(): Promise<void>;
}

export function openClient(driver: DriverName, url: string, max = 10): OpenClient {
  if (driver === 'pg') {
    const pool = new pg.Pool({ connectionString: url, max });
    return { client: pool, close: () => pool.end() };
  }
  const sql = postgresJs(url, { max, onnotice: () => {} });
  return { client: sql, close: () => sql.end({ timeout: 1 }) };
}

/** What a store is given by its backend. */
export function scopeOf(election: string, more: Partial<Scope> = {}): Scope {
  return {
    election,
    clock: systemClock,
    timing: resolveTiming({ lease: 1_500 }),
    random: Math.random,
    uniqueId: randomUUID,
    onTrouble: () => {},
    ...more,
  };
}
