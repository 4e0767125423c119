// Real processes that share shards on real stores: they join, are killed and are drained.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EtcdServer, PostgresServer, RedisServer } from '@incumbent/servers';
import {
  etcdAvailable,
  postgresAvailable,
  redisAvailable,
  startEtcd,
  startPostgres,
  startRedis,
} from '@incumbent/servers';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ShardProcesses } from './support/processes.ts';

interface Store {
  readonly missing: string | undefined;
  open(): Promise<string>;
  close(): Promise<void>;
}

let directory: string;
let database: PostgresServer | undefined;
let cache: RedisServer | undefined;
let keys: EtcdServer | undefined;

const stores: Readonly<Record<string, Store>> = {
  file: {
    missing: undefined,
    async open() {
      directory = mkdtempSync(join(tmpdir(), 'shards-'));
      return directory;
    },
    async close() {
      rmSync(directory, { recursive: true, force: true });
    },
  },
  postgres: {
    missing: postgresAvailable(),
    async open() {
      database = await startPostgres();
      return database.url;
    },
    async close() {
      await database?.close();
    },
  },
  redis: {
    missing: redisAvailable(),
    async open() {
      cache = await startRedis();
      return cache.url;
    },
    async close() {
      await cache?.close();
    },
  },
  etcd: {
    missing: etcdAvailable(),
    async open() {
      keys = await startEtcd();
      return `127.0.0.1:${keys.port}`;
    },
    async close() {
      await keys?.close();
    },
  },
};

describe.each(Object.entries(stores))('on %s', (kind, { missing, open, close }) => {
  let where = '';
  let processes: ShardProcesses | undefined;

  beforeAll(async () => {
    if (missing === undefined) where = await open();
  });
  afterEach(() => processes?.end());
  afterAll(() => close());

  test.skipIf(missing !== undefined)(
    'processes share the shards, and those of one that is killed or drained go to the others',
    async () => {
      // A lease that a busy machine can keep: the test counts every shard that moves.
      const own = new ShardProcesses([kind, where], 64, '6s');
      processes = own;
      await Promise.all(['a', 'b', 'c'].map((id) => own.start(id)));
      await processes.until(() => processes?.isEven === true);
      const first = processes.spells.length;

      await processes.start('d');
      await processes.until(() => processes?.isEven === true);
      expect(processes.counts().get('d')).toBe(16);
      // No shard has moved but those that the newcomer got.
      expect(processes.spells.length - first).toBe(16);

      const kept = processes.spells.filter(({ process: id }) => id !== 'b');
      const untouched = kept.filter(({ endedMs }) => endedMs === Number.POSITIVE_INFINITY);
      await processes.kill('b');
      await processes.until(() => processes?.isEven === true);
      expect(untouched.every(({ endedMs }) => endedMs === Number.POSITIVE_INFINITY)).toBe(true);

      await processes.start('e', 65);
      expect(processes.said.get('e')).toEqual([
        expect.stringContaining('this process has 65 numbered shards, and the others have 64'),
      ]);
      await processes.kill('e');

      await processes.tell('c', 'drain');
      await processes.until(() => processes?.isEven === true);
      expect(processes.counts().size).toBe(2);
      await Promise.all([processes.tell('a', 'close'), processes.tell('d', 'close')]);
      expect(processes.faults()).toEqual([]);
    },
  );
});
