import { RecordDamagedError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { TimingLimits } from '../../base/timing.ts';
import { deriveTiming } from '../../base/timing.ts';
import { unlessAborted } from '../../base/wait.ts';
import { lookingScope } from '../../core/listing.ts';
import type { LeaseLister, LeasePage, ListedLease } from '../../mechanisms/lease/listing.ts';
import { unreadableLease } from '../../mechanisms/lease/listing.ts';
import type { Reading } from '../../mechanisms/lease/store.ts';
import { Refusals } from './errors.ts';
import type { GcsOptions } from './options.ts';
import { objectNameOf } from './options.ts';
import type { Shared } from './store.ts';
import { GcsStore } from './store.ts';

const readsAtOnce = 32;
/** Far above any record. A foreign object may have terabytes. */
const mostBytes = 8 * 1_024 * 1_024;

/** As much of a listed file as we look at. */
interface ListedFile {
  readonly name: string;
  readonly metadata?: { readonly contentType?: string; readonly size?: string | number };
}

/**
 * The objects below the prefix that hold an election, of ours or of a Go program. Only their
 * contents tell that they do.
 */
export function gcsLister(
  shared: Shared,
  options: GcsOptions,
  limits: TimingLimits,
): LeaseLister | string {
  const { prefix = '', objectName } = options;
  if (objectName !== undefined) {
    return (
      'gcs() was given objectName, so no name of an object tells its election: to list elections, ' +
      'give a prefix instead'
    );
  }
  const { clockStepMs, bucket } = shared.options;
  const timing = deriveTiming({}, limits);
  return {
    ...(clockStepMs === undefined ? {} : { clockStepMs }),
    async page(after, _wanted, signal): Promise<LeasePage> {
      const { files, next } = await filesAfter(after, signal);
      const found = await inParallel(files, readsAtOnce, (file) => read(file, signal));
      return { elections: found.filter((each) => each !== undefined), next };
    },
  };

  async function filesAfter(after: unknown, signal: AbortSignal) {
    const query = { prefix, maxResults: 1_000, autoPaginate: false };
    const pageToken = after === undefined ? {} : { pageToken: after };
    try {
      signal.throwIfAborted();
      const asked = shared.storage.bucket(bucket).getFiles?.({ ...query, ...pageToken });
      const answer = (await unlessAborted(asked ?? noFiles(), signal)) as readonly unknown[];
      shared.refusals.allowed('list');
      const [files = [], nextQuery] = answer;
      const { pageToken: next } = (nextQuery ?? {}) as { readonly pageToken?: unknown };
      return { files: files as readonly ListedFile[], next };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw shared.refusals.error('list', error);
    }
  }

  /** @returns undefined for an object that is not ours, or gone */
  async function read(
    { name: object, metadata = {} }: ListedFile,
    signal: AbortSignal,
  ): Promise<ListedLease | undefined> {
    const name = object.slice(prefix.length);
    if (!isNameOf(name, object) || Number(metadata.size ?? 0) > mostBytes) return undefined;
    // A refusal of one object says nothing of another one, so each read remembers for itself.
    const alone = { ...shared, refusals: new Refusals(bucket) };
    const store = new GcsStore(alone, lookingScope(name, timing), object);
    try {
      const reading: Reading = await store.read(signal);
      return reading.record === undefined ? undefined : { name, reading: () => reading };
    } catch (error) {
      // Anything may be no message of an election. We have said so of ours.
      const isOurs = metadata.contentType === 'application/x-protobuf';
      if (error instanceof RecordDamagedError && !isOurs) return undefined;
      return unreadableLease(name, error, signal);
    }
  }

  function isNameOf(name: string, object: string): boolean {
    try {
      return objectNameOf(name, options) === object;
    } catch {
      return false;
    }
  }
}

async function noFiles(): Promise<never> {
  throw new Error('this client has no Bucket.getFiles');
}
