import type { PostgresServer } from '@incumbent/servers';
import { startPostgres } from '@incumbent/servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { postgres } from '../src/backends/postgres/index.ts';
import { openPostgres } from '../src/backends/postgres/open.ts';
import type { Backend, LeaseStore } from '../src/testing/index.ts';
import { electionScenarios, leaseStoreScenarios, runConformance } from '../src/testing/index.ts';
import type { OpenClient } from './support/postgres.ts';
import { drivers, missing, openClient, scopeOf } from './support/postgres.ts';

// Ages are told instead of deaths proved.
const storeScenarios = leaseStoreScenarios.filter(({ needs }) => needs !== 'deathProof');
const capabilities = { hints: true, lists: true, age: true };
let server: PostgresServer;

beforeAll(async () => {
  if (missing === undefined) server = await startPostgres();
});

afterAll(() => server?.close());

for (const driver of drivers) {
  describe.skipIf(missing !== undefined)(`PostgreSQL by the client "${driver}"`, () => {
    const clients: OpenClient[] = [];
    let opened = 0;
    /** As two processes have them. */
    const nextClient = () => clients[opened++ % clients.length]!.client;

    beforeAll(async () => {
      clients.push(openClient(driver, server.url), openClient(driver, server.url));
      // Both at the same time: only one can make the table.
      await Promise.all(
        clients.map(({ client }) =>
          openPostgres(client, {}).openStore(scopeOf('any')).init(new AbortController().signal),
        ),
      );
    });
    afterAll(() => Promise.all(clients.map((client) => client.close())));

    describe.concurrent('the store', () => {
      for (const scenario of storeScenarios) {
        test.concurrent(scenario.name, async ({ expect }) => {
          const [result] = await runConformance<LeaseStore>([scenario], {
            open: (name) => openPostgres(nextClient(), {}).openStore(scopeOf(name)),
            capabilities,
            prefix: driver,
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
            open: () => postgres(nextClient(), { clockStep: 0 }),
            capabilities,
            leaseMs: 5_000,
            prefix: `${driver}-election`,
          });
          expect(result?.reason).toBeUndefined();
        });
      }
    });
  });
}

test.skipIf(missing !== undefined)('nothing is left connected', async () => {
  const left = `select count(*) from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid()`;
  await expect.poll(() => server.sql(left)).toBe('0');
});
