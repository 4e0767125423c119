import type { S3Client } from '@aws-sdk/client-s3';
import type { Dialect } from '@incumbent/servers';
import { cephDialect, FakeS3 } from '@incumbent/servers';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { s3 } from '../src/backends/s3/index.ts';
import type { Backend, LeaseStore } from '../src/testing/index.ts';
import { electionScenarios, leaseStoreScenarios, runConformance } from '../src/testing/index.ts';
import { bucketOptions, s3Client, s3Stores } from './support/s3.ts';

/** A request of the SDK takes more of a processor than those of other clients: not all at once. */
const leaseMs = 5_000;

const dialects: readonly (readonly [string, Partial<Dialect>, typeof electionScenarios])[] = [
  ['that answers as AWS does', {}, electionScenarios],
  // Elections do not see the differences. On the real gateway they are held in s3-ceph.test.ts.
  ['that answers as Ceph RGW does', cephDialect, electionScenarios.slice(0, 1)],
];

for (const [name, dialect, elections] of dialects) {
  describe(`objects of an S3 endpoint ${name}`, () => {
    let server: FakeS3;
    // One client for all, as in a program: no test makes new connections.
    let client: S3Client;
    let openStore: (election: string) => LeaseStore;

    beforeAll(async () => {
      server = await FakeS3.start({ dialect });
      client = s3Client(server);
      openStore = s3Stores(client, leaseMs);
    });

    afterAll(async () => {
      client?.destroy();
      await server?.close();
    });

    describe('as a store', () => {
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
          expect(server.unexpected).toEqual([]);
        });
      }
    });

    describe('elections', () => {
      for (const scenario of elections) {
        if (['lists', 'deathProof', 'hints'].includes(scenario.needs ?? '')) continue;
        test.concurrent(scenario.name, async ({ expect }) => {
          const [result] = await runConformance<Backend>([scenario], {
            // Another process proves the endpoint for itself.
            open: () => s3(client, bucketOptions),
            capabilities: { age: true },
            leaseMs,
            prefix: 'election',
          });
          expect(result?.reason).toBeUndefined();
          expect(server.unexpected).toEqual([]);
        });
      }
    });
  });
}
