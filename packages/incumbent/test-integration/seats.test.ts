// Twenty processes, three seats, and leaders that are killed or frozen: never four leaders, and three
// again. Judged by what the leaders themselves have written, with their tokens.
//
//   SEATS_STRIKES=200   so many on each store; also on Redis, etcd and files
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  etcdAvailable,
  postgresAvailable,
  redisAvailable,
  startEtcd,
  startPostgres,
  startRedis,
} from '@incumbent/servers';
import { startServer } from '@incumbent/zookeeper-testing';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { schema } from '../src/backends/postgres/index.ts';
import { Crew, judge, strike } from './support/seats-crew.ts';
import { missing as noZooKeeper } from './support/zookeeper.ts';

const program = fileURLToPath(new URL('./support/seats-process.mjs', import.meta.url));
const wanted = process.env['SEATS_STRIKES'];
const strikes = Number(wanted ?? 6);

interface Store {
  readonly kind: string;
  readonly missing: string | undefined;
  start(): Promise<{ readonly address: string; close(): Promise<unknown> }>;
}

const often: readonly Store[] = [
  {
    kind: 'postgres',
    missing: postgresAvailable(),
    async start() {
      const server = await startPostgres();
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      await client.query(schema());
      await client.end();
      return { address: server.url, close: () => server.close() };
    },
  },
  {
    kind: 'zookeeper',
    missing: noZooKeeper,
    async start() {
      const server = await startServer({ tickTimeMs: 200 });
      return { address: server.connectionString, close: () => server.close() };
    },
  },
];

const seldom: readonly Store[] = [
  {
    kind: 'file',
    missing: undefined,
    async start() {
      const address = await mkdtemp(join(tmpdir(), 'incumbent-seats-'));
      return { address, close: () => rm(address, { recursive: true, force: true }) };
    },
  },
  {
    kind: 'redis',
    missing: redisAvailable(),
    async start() {
      const server = await startRedis();
      return { address: server.url, close: () => server.close() };
    },
  },
  {
    kind: 'etcd',
    missing: etcdAvailable(),
    async start() {
      const server = await startEtcd();
      return { address: server.endpoint, close: () => server.close() };
    },
  },
];

describe.each(wanted === undefined ? often : [...often, ...seldom])(
  'three seats on $kind',
  (store) => {
    test.skipIf(store.missing !== undefined)(
      'leaders are killed and frozen: never four, and three again',
      { timeout: 120_000 + strikes * 60_000 },
      async () => {
        const { address, close } = await store.start();
        const crew = new Crew([process.execPath, program, store.kind, address]);
        try {
          const tookMs = await strike(crew, strikes);
          const { most, faults } = judge([...crew.terms.values()]);
          expect(faults).toEqual([]);
          expect(most).toBe(3);
          console.log(
            `${store.kind}: ${strikes} strikes, at most ${most} leaders; three again after ${tookMs[0]} to ` +
              `${tookMs.at(-1)} ms`,
          );
        } finally {
          await crew.close();
          await close();
        }
      },
    );
  },
);
