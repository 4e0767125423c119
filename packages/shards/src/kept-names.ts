/**
 * The names of shards, as the store keeps them for programs without the list. Nothing depends on them:
 * slots and their rules know numbers alone.
 */
import type { LeaseRecord } from 'incumbent/backend';
import { emptyLeaseRecord, uniqueId } from 'incumbent/internal';
import { decodeNames, encodeNames } from './codec.ts';
import type { Context } from './context.ts';
import { namesOf, sameList } from './lists.ts';
import type { Records } from './records.ts';
import type { ShardList } from './slot.ts';

/** Some stores take no larger record. */
const mostBytes = 100_000;

/** Writes the names, unless they are there, or are too long for some stores. @throws the store's error */
export async function keepNames<Shard>(
  context: Context<Shard>,
  signal: AbortSignal,
): Promise<void> {
  const { name, names, timing } = context.options;
  if (names.names === undefined) return;
  const source = encodeNames(names.names);
  if (source.length > mostBytes) return;
  const what = 'keeping the names of the shards';
  const store = context.names;
  const { record, version } = await context.ask(what, signal, (stop) => store.read(stop));
  const shards = Buffer.from(source).toString('base64');
  if (record?.shards === shards) return;
  const next = { ...emptyLeaseRecord(`${name}/list`, uniqueId(), timing.leaseMs), shards };
  // In a conflict, another coordinator writes them.
  await context.ask(what, signal, (stop) => store.swap(version, next, stop));
}

/** @returns undefined: they are not kept, or those of another list are */
export async function readNames(
  records: Records,
  list: ShardList,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const { record } = await records.ask('reading the names of the shards', signal, (stop) =>
    records.names.read(stop),
  );
  return namesIn(record, list, records.options.name);
}

function namesIn(
  record: LeaseRecord | undefined,
  list: ShardList,
  name: string,
): readonly string[] | undefined {
  if (record?.shards === undefined) return undefined;
  try {
    const found = decodeNames(Buffer.from(record.shards, 'base64'), `the names of "${name}"`);
    const known = namesOf(found);
    return sameList(known.list, list) ? known.names : undefined;
  } catch {
    // Without them, the numbers are shown.
    return undefined;
  }
}
