/** Elections on objects of S3, and of services with its protocol that honour conditional writes. */
import type { Backend } from '../../core/contest.ts';
import { leaseBackend } from '../../mechanisms/lease/backend.ts';
import type { S3ClientLike } from './client.ts';
import { Refusals } from './errors.ts';
import { s3Lister } from './lister.ts';
import { Objects } from './objects.ts';
import type { S3Guard, S3Options } from './options.ts';
import { checkClient, checkOptions } from './options.ts';
import { ConditionProof, Proof } from './proof.ts';
import { S3Store } from './store.ts';

export type {
  ListInput,
  ObjectName,
  PutInput,
  S3ClientLike,
  S3Command,
  S3Commands,
} from './client.ts';
export type { TagForm } from './etag.ts';
export type { S3Guard, S3Options } from './options.ts';

/**
 * A backend that holds elections on objects of S3. One client serves many elections. Before its
 * first write it proves that the endpoint honours conditional writes.
 * @param client `new S3Client()` of `@aws-sdk/client-s3`, version 3, for AWS or another endpoint.
 * Its own retries do no harm
 * @throws InvalidOptionError
 */
export function s3(client: S3ClientLike, options: S3Options): Backend<S3Guard> {
  checkClient(client);
  const checked = checkOptions(options);
  const { bucket, commands, probeKey, proves, tagForms, clockStepMs, keyOf } = checked;
  const objects = new Objects(client, bucket, commands, new Refusals(bucket));
  const conditions = new ConditionProof(objects, probeKey, tagForms);
  const proof = new Proof(
    (uniqueId, signal) => conditions.run(uniqueId, signal),
    proves ? undefined : tagForms[0],
  );
  return leaseBackend<S3Guard>({
    kind: 's3',
    description: `objects of the S3 bucket "${bucket}"`,
    // Every request costs money.
    limits: { defaultLeaseMs: 45_000, pollsPerLease: 2 },
    openStore: (scope) =>
      new S3Store({ objects, proof, bucket, clockStepMs }, scope, keyOf(scope.election)),
    // A refusal of one object says nothing of another one, so each read remembers for itself.
    list: s3Lister(
      objects,
      () => new Objects(client, bucket, commands, new Refusals(bucket)),
      checked,
    ),
    guard: ({ election }, _store, token) => ({ token, bucket, key: keyOf(election) }),
  });
}
