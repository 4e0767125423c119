import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { FakeS3, S3Credentials } from '@incumbent/servers';
import { ownerCredentials } from '@incumbent/servers';
import { Refusals } from '../../src/backends/s3/errors.ts';
import type { S3ClientLike, S3Options } from '../../src/backends/s3/index.ts';
import { Objects } from '../../src/backends/s3/objects.ts';
import { checkOptions } from '../../src/backends/s3/options.ts';
import { ConditionProof, Proof } from '../../src/backends/s3/proof.ts';
import { S3Store } from '../../src/backends/s3/store.ts';
import type { LeaseStore } from '../../src/testing/index.ts';
import { storeScope } from '../../test/support/store-scope.ts';

export const s3Commands = { GetObjectCommand, PutObjectCommand };

export const bucketOptions: S3Options = { bucket: 'elections', commands: s3Commands };

/** The SDK as users have it, without its steps before the first request on an unknown machine. */
export function s3Client(
  { url }: Pick<FakeS3, 'url'>,
  credentials: S3Credentials = ownerCredentials,
  config: S3ClientConfig = {},
): S3Client {
  return new S3Client({
    endpoint: url,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials,
    ...config,
  });
}

/** One of these is for one process. */
export function s3Stores(
  client: S3ClientLike,
  leaseMs: number,
  options: S3Options = bucketOptions,
): (election: string) => LeaseStore {
  const { bucket, commands, clockStepMs, probeKey, tagForms, keyOf } = checkOptions(options);
  const objects = new Objects(client, bucket, commands, new Refusals(bucket));
  const conditions = new ConditionProof(objects, probeKey, tagForms);
  const proof = new Proof((uniqueId, signal) => conditions.run(uniqueId, signal));
  return (election) =>
    new S3Store(
      { objects, proof, bucket, clockStepMs },
      storeScope(election, leaseMs),
      keyOf(election),
    );
}
