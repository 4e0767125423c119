import { Storage } from '@google-cloud/storage';
import { FakeGcs } from '@incumbent/servers';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { Refusals } from '../src/backends/gcs/errors.ts';
import { gcs } from '../src/backends/gcs/index.ts';
import { checkOptions } from '../src/backends/gcs/options.ts';
import { GcsStore } from '../src/backends/gcs/store.ts';
import type { Backend, LeaseStore } from '../src/testing/index.ts';
import { electionScenarios, leaseStoreScenarios, runConformance } from '../src/testing/index.ts';
import { storeScope } from '../test/support/store-scope.ts';

const leaseMs = 5_000;
const options = { bucket: 'elections', maxWritesPerSecond: 100 } as const;

let server: FakeGcs;
// One client for all, as in a program: no test makes new connections.
let storage: Storage;

beforeAll(async () => {
  server = await FakeGcs.start();
  storage = new Storage({ apiEndpoint: server.url, projectId: 'test' });
});

afterAll(() => server?.close());

describe.concurrent('a bucket of Google Cloud Storage by @google-cloud/storage', () => {
  for (const scenario of leaseStoreScenarios) {
    if (['lists', 'deathProof', 'hints'].includes(scenario.needs ?? '')) continue;
    test.concurrent(scenario.name, async ({ expect }) => {
      const [result] = await runConformance<LeaseStore>([scenario], {
        open: openStore,
        capabilities: { age: true },
        leaseMs,
        prefix: 'store',
      });
      expect(result?.reason).toBeUndefined();
    });
  }

  for (const scenario of electionScenarios) {
    if (scenario.needs === 'lists') continue;
    test.concurrent(scenario.name, async ({ expect }) => {
      const [result] = await runConformance<Backend>([scenario], {
        // Another process has a client and a backend of its own.
        open: () => gcs(storage, options),
        capabilities: { age: true },
        leaseMs,
        prefix: 'election',
      });
      expect(result?.reason).toBeUndefined();
    });
  }
});

function openStore(election: string): LeaseStore {
  // A store has no time of its own: how long it waits for an answer is all it takes of the lease.
  const scope = storeScope(election, 60_000);
  const shared = { storage, options: checkOptions(options), refusals: new Refusals('elections') };
  return new GcsStore(shared, scope, election);
}
