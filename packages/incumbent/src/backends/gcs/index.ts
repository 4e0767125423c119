/**
 * Elections in a bucket of Google Cloud Storage, also those that Go programs on
 * vimeo/leaderelection hold.
 */
import { describeClient } from '../../base/candidate.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { TimingLimits } from '../../base/timing.ts';
import type { Backend } from '../../core/contest.ts';
import { leaseBackend } from '../../mechanisms/lease/backend.ts';
import type { StorageLike } from './client.ts';
import { Refusals } from './errors.ts';
import { gcsLister } from './lister.ts';
import type { GcsGuard, GcsOptions } from './options.ts';
import { checkOptions, objectNameOf } from './options.ts';
import { GcsStore } from './store.ts';

export type {
  BucketLike,
  FileLike,
  RequestInterceptor,
  SinkLike,
  SourceLike,
  StorageLike,
} from './client.ts';
export type { AclRule, GcsGuard, GcsOptions } from './options.ts';

/** The shortest lease where the store takes one write a second. */
const leaseOfOneWriteMs = 5_000;
const shortestLeaseMs = 1_000;

/**
 * @param storage a `Storage` of `@google-cloud/storage`, 7 or 8. One client serves many elections
 * @throws InvalidOptionError
 */
export function gcs(storage: StorageLike, options: GcsOptions): Backend<GcsGuard> {
  const checked = checkOptions(options);
  if (typeof (storage as Partial<StorageLike> | null | undefined)?.bucket !== 'function') {
    throw new InvalidOptionError(
      `gcs() takes a Storage of @google-cloud/storage, not ${describeClient(storage)}`,
    );
  }
  const { bucket, maxWritesPerSecond } = checked;
  const refusals = new Refusals(bucket);
  const limits: TimingLimits = {
    defaultLeaseMs: 45_000,
    minLeaseMs: Math.max(shortestLeaseMs, leaseOfOneWriteMs / maxWritesPerSecond),
    minRenewEveryMs: 1_000 / maxWritesPerSecond,
    pollsPerLease: 2,
  };
  const shared = { storage, options: checked, refusals };
  return leaseBackend<GcsGuard>({
    kind: 'gcs',
    description: `objects in gs://${bucket}/${options.prefix ?? ''}`,
    limits,
    openStore: (scope) => new GcsStore(shared, scope, objectNameOf(scope.election, options)),
    list: gcsLister(shared, options, limits),
    guard: (scope, _store, token) => ({
      token,
      bucket,
      objectName: objectNameOf(scope.election, options),
    }),
  });
}
