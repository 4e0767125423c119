import { inParallel } from '../../base/in-parallel.ts';
import type { LeaseLister, LeasePage, ListedLease } from '../../mechanisms/lease/listing.ts';
import { unreadableLease } from '../../mechanisms/lease/listing.ts';
import { decodeRecordOf } from '../../record/lease-record.ts';
import type { Found, ListRequest, Objects } from './objects.ts';
import { locationOf } from './objects.ts';
import type { CheckedOptions } from './options.ts';
import { ageOf, looksLikeRecord } from './store.ts';

const readsAtOnce = 32;

/** The objects below the prefix that hold a record. Only their contents tell that they do. */
export function s3Lister(
  objects: Objects,
  objectsOfOneRead: () => Objects,
  options: CheckedOptions,
): LeaseLister | string {
  const { bucket, prefix, clockStepMs } = options;
  const Command = options.commands.ListObjectsV2Command;
  if (prefix === undefined) {
    return (
      's3() was given objectName, so no name of an object tells its election: to list elections, ' +
      'give a prefix instead'
    );
  }
  if (Command === undefined) {
    return (
      's3() was given no ListObjectsV2Command, so it cannot list elections: add it to commands ' +
      '({ GetObjectCommand, PutObjectCommand, ListObjectsV2Command })'
    );
  }
  return {
    ...(clockStepMs === undefined ? {} : { clockStepMs }),
    async page(after, _wanted, signal): Promise<LeasePage> {
      const request: ListRequest = { Command, prefix, after: after as string | undefined };
      const { keys, next } = await objects.list(request, signal);
      const found = await inParallel(keys, readsAtOnce, (key) => read(key, prefix, signal));
      return { elections: found.filter((each) => each !== undefined), next };
    },
  };

  /** @returns undefined for an object that is not ours, or gone */
  async function read(
    key: string,
    start: string,
    signal: AbortSignal,
  ): Promise<ListedLease | undefined> {
    const name = key.slice(start.length);
    if (!isKeyOf(name, key)) return undefined;
    let found: Found | undefined;
    try {
      found = await objectsOfOneRead().get(key, signal);
    } catch (error) {
      return unreadableLease(name, error, signal);
    }
    if (found === undefined || !looksLikeRecord(found.text)) return undefined;
    return { name, reading: () => readingOf(name, key, found) };
  }

  function isKeyOf(name: string, key: string): boolean {
    try {
      return options.keyOf(name) === key;
    } catch {
      return false;
    }
  }

  function readingOf(name: string, key: string, found: Found) {
    const record = decodeRecordOf(name, found.text, locationOf(bucket, key));
    const ageMs = clockStepMs === undefined ? undefined : ageOf(found);
    return { record, version: found.tag, ...(ageMs === undefined ? {} : { ageMs }) };
  }
}
