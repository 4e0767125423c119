/**
 * The same as conformance-s3.test.ts on a real S3 server: Ceph's gateway. It takes 70 MB of
 * packages, and a quarter of a minute to start. So where it is not installed it is left out,
 * also in CI.
 */
import type { S3Client } from '@aws-sdk/client-s3';
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import type { CephGateway } from '@incumbent/servers';
import { cephAvailable, startCephGateway } from '@incumbent/servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { s3 } from '../src/backends/s3/index.ts';
import type { Backend, LeaseStore } from '../src/testing/index.ts';
import { electionScenarios, leaseStoreScenarios, runConformance } from '../src/testing/index.ts';
import { bucketOptions, s3Client, s3Stores } from './support/s3.ts';

const leaseMs = 5_000;
const missing = cephAvailable();
if (missing !== undefined) console.log(`elections on Ceph RGW are not tested: ${missing}`);

describe.skipIf(missing !== undefined)('objects of Ceph RGW', () => {
  let server: CephGateway;
  let client: S3Client;
  let openStore: (election: string) => LeaseStore;

  beforeAll(async () => {
    server = await startCephGateway();
    client = s3Client(server, server.credentials);
    openStore = s3Stores(client, leaseMs);
    await client.send(new CreateBucketCommand({ Bucket: 'elections' }));
    // The first requests of all take seconds: it makes its pools then.
    await openStore('first').init?.(new AbortController().signal);
  });

  afterAll(async () => {
    client?.destroy();
    await server?.close();
  });

  describe('as a store', () => {
    for (const scenario of leaseStoreScenarios) {
      if (['lists', 'deathProof', 'hints'].includes(scenario.needs ?? '')) continue;
      test.concurrent(scenario.name, async (context) => {
        const [result] = await runConformance<LeaseStore>([scenario], {
          open: openStore,
          capabilities: { age: true },
          leaseMs,
          prefix: 'store',
        });
        context.expect(result?.reason).toBeUndefined();
      });
    }
  });

  describe('elections', () => {
    for (const scenario of electionScenarios) {
      if (['lists', 'deathProof', 'hints'].includes(scenario.needs ?? '')) continue;
      test.concurrent(scenario.name, async (context) => {
        const [result] = await runConformance<Backend>([scenario], {
          open: () => s3(client, bucketOptions),
          capabilities: { age: true },
          leaseMs,
          prefix: 'election',
        });
        context.expect(result?.reason).toBeUndefined();
      });
    }
  });

  test('the stand-in answers as it does', async () => {
    // The stand-in's dialect is right, and the checksums of the SDK are no obstacle.
    const without = s3Client(server, server.credentials, {
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
    for (const each of [client, without]) {
      const put = (name: string, rest: object) =>
        each
          .send(
            new bucketOptions.commands.PutObjectCommand({
              Bucket: 'elections',
              Key: name,
              Body: `${Math.random()}`,
              ContentType: 'text/plain',
              ...rest,
            }) as never,
          )
          .then(
            (output) => (output as unknown as { readonly ETag: string }).ETag,
            (error: { readonly $metadata: { readonly httpStatusCode: number } }) =>
              error.$metadata.httpStatusCode,
          );
      const name = `answers-${Math.random()}`;
      expect(await put(name, { IfMatch: 'abc' })).toBe(412);
      const tag = String(await put(name, { IfNoneMatch: '*' }));
      expect(tag).toMatch(/^"[0-9a-f]{32}"$/);
      expect(await put(name, { IfNoneMatch: '*' })).toBe(412);
      expect(await put(name, { IfMatch: tag })).toBe(412);
      expect(await put(name, { IfMatch: tag.replaceAll('"', '') })).toMatch(/^"[0-9a-f]{32}"$/);
    }
    without.destroy();
  });
});
