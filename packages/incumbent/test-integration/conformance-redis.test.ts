import type { RedisServer } from '@incumbent/servers';
import { startRedis } from '@incumbent/servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redis } from '../src/backends/redis/index.ts';
import { openRedis } from '../src/backends/redis/open.ts';
import type { Backend, LeaseStore } from '../src/testing/index.ts';
import { electionScenarios, leaseStoreScenarios, runConformance } from '../src/testing/index.ts';
import type { OpenClient } from './support/redis.ts';
import { libraries, missing, openClient, scopeOf } from './support/redis.ts';

// The file store proves deaths. Redis tells ages instead.
const storeScenarios = leaseStoreScenarios.filter(({ needs }) => needs !== 'deathProof');
const capabilities = { hints: true, lists: true, age: true };
let server: RedisServer;

beforeAll(async () => {
  if (missing === undefined) server = await startRedis();
});

afterAll(() => server?.close());

for (const library of libraries) {
  describe.skipIf(missing !== undefined)(`Redis by the client "${library}"`, () => {
    let opened: OpenClient;
    beforeAll(async () => {
      opened = await openClient(library, server);
    });
    afterAll(() => opened.close());

    describe.concurrent('the store', () => {
      for (const scenario of storeScenarios) {
        test.concurrent(scenario.name, async ({ expect }) => {
          // As processes have them: each handle with a backend of its own.
          const [result] = await runConformance<LeaseStore>([scenario], {
            open: (name) => openRedis(opened.client, {}).openStore(scopeOf(name)),
            capabilities,
            prefix: library,
          });
          expect(result?.reason).toBeUndefined();
        });
      }
    });

    describe.concurrent('an election', () => {
      for (const scenario of electionScenarios) {
        test.concurrent(scenario.name, async ({ expect }) => {
          const [result] = await runConformance<Backend>([scenario], {
            // Short leases: the clock of this machine is not set while they run.
            open: () => redis(opened.client, { clockStep: 0 }),
            capabilities,
            leaseMs: 5_000,
            prefix: `${library}-election`,
          });
          expect(result?.reason).toBeUndefined();
        });
      }
    });
  });
}

test.skipIf(missing !== undefined)('nobody is left subscribed', async () => {
  expect(await server.command('PUBSUB', 'CHANNELS')).toEqual([]);
});
