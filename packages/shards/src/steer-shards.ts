/** Requests of operators, for people and programs that take no part. The coordinator obeys them. */
import { InvalidOptionError, RefusedError } from 'incumbent';
import type { LeaseRecord } from 'incumbent/backend';
import {
  administer,
  checkName,
  checkSignalOption,
  checkUntil,
  drained,
  drainOf,
} from 'incumbent/internal';
import type { Head } from './codec.ts';
import { encodeHead } from './codec.ts';
import { headIn } from './head.ts';
import { mostPins } from './pins.ts';
import type { ReadShardsOptions } from './read-shards.ts';
import { readShards, recordsOf } from './read-shards.ts';
import type { ShardsStatus } from './status.ts';

interface SignalOption {
  readonly signal?: AbortSignal;
}

/** The outcome of a request. */
export interface SteeringResult {
  /** False: the record said so already. */
  readonly changed: boolean;
  /** The shards as they stood before. */
  readonly before: ShardsStatus;
}

/**
 * Wants a shard at one process, by an entry in the record of the set. The coordinator moves it there
 * when it next assigns shards, and the shard counts in the balance. While no process of that id takes
 * part, or it is drained, the pin sleeps: the shard is shared like the others.
 * @param shard its number. Shards with names have their places in the sorted list as numbers
 * @throws RefusedError when there are no such shards, no such process, or when it is drained
 * @throws InvalidOptionError for a shard that there is not; the store's error
 */
export async function pinShard(
  options: ReadShardsOptions,
  shard: number,
  to: string,
  { signal }: SignalOption = {},
): Promise<SteeringResult> {
  checkName('the id of the process', to, 200);
  return steer('pinShard', options, signal, (before) => {
    const number = numberIn(before, shard);
    requireMember(before, to);
    return (record, head, wallMs) => {
      if (drainOf(record, to, wallMs) !== undefined) throw isDrained(to, before.name);
      requireListed(head, number, before.name);
      if (head.pins.get(number) === to) return undefined;
      if (!head.pins.has(number) && head.pins.size >= mostPins) {
        throw new RefusedError(
          `"${before.name}" has ${mostPins} pinned shards already, the most that are kept: clear one first`,
        );
      }
      return withPins(record, head, new Map([...head.pins, [number, to]]));
    };
  });
}

/**
 * Gives a pinned shard back to the balance.
 * @throws RefusedError when there are no such shards
 * @throws InvalidOptionError for a shard that there is not; the store's error
 */
export async function unpinShard(
  options: ReadShardsOptions,
  shard: number,
  { signal }: SignalOption = {},
): Promise<SteeringResult> {
  return steer('unpinShard', options, signal, (before) => {
    const number = numberIn(before, shard);
    return (record, head) => {
      if (!head.pins.has(number)) return undefined;
      const rest = [...head.pins].filter(([other]) => other !== number);
      return withPins(record, head, new Map(rest));
    };
  });
}

/**
 * Moves all shards of a process to others until that time, and keeps it out. A time that is over lets
 * it take part again. A process of that id need not take part now: `before.members` shows whether it
 * does.
 * @throws InvalidOptionError for what is no time; RefusedError when there are no such shards, or no room for another
 *   drain; the store's error
 */
export async function drainMember(
  options: ReadShardsOptions,
  id: string,
  until: Date,
  { signal }: SignalOption = {},
): Promise<SteeringResult> {
  checkName('the id of the process', id, 200);
  const untilUnixMs = checkUntil(until);
  return steer(
    'drainMember',
    options,
    signal,
    () => (record, _head, wallMs) => drained(record, { id, untilUnixMs }, wallMs),
  );
}

/** @returns the record to write; undefined: it says so already */
type Change = (record: LeaseRecord, head: Head, wallMs: number) => LeaseRecord | undefined;

/**
 * @param plan refuses a request before anything is changed
 */
async function steer(
  call: string,
  options: ReadShardsOptions,
  wanted: AbortSignal | undefined,
  plan: (before: ShardsStatus) => Change,
): Promise<SteeringResult> {
  checkSignalOption(call, wanted === undefined ? {} : { signal: wanted });
  const signal = wanted ?? new AbortController().signal;
  const before = await readShards(options, { signal });
  const { name } = options;
  if (before === undefined) throw new RefusedError(`there are no shards "${name}" on this store`);
  const change = plan(before);
  const records = recordsOf(call, options);
  try {
    const { head: store, options: own } = records;
    const look = async () => {
      const { version, record } = await records.readHeadLease(signal);
      const head = headIn(record, name);
      if (record === undefined || head === undefined) {
        throw new RefusedError(`the shards "${name}" are gone`);
      }
      return {
        // Only its own answer counts here.
        view: { state: 'unknown' as const, sinceUnixMs: 0 },
        token: record.token,
        async plan() {
          const next = change(record, head, own.clock.wallMs());
          if (next === undefined) return undefined;
          // By the very version that the decision was made on, as any write of this record.
          const write = async () => {
            const { outcome } = await records.ask('writing the request', signal, (stop) =>
              store.swap(version, next, stop),
            );
            return outcome === 'ok';
          };
          return { write };
        },
      };
    };
    const { changed } = await administer(records.scope(name), { kind: call }, look, signal);
    return { changed, before };
  } finally {
    await records.close();
  }
}

function withPins(record: LeaseRecord, head: Head, pins: Head['pins']): LeaseRecord {
  return { ...record, shards: Buffer.from(encodeHead({ ...head, pins })).toString('base64') };
}

function numberIn(before: ShardsStatus, shard: number): number {
  // Refuses a shard that there is not.
  before.owner(shard);
  return shard;
}

/** Another list may have taken the place of the one that was read before. */
function requireListed({ list: { count, digest } }: Head, shard: number, name: string): void {
  if (digest !== 0n || shard < count) return;
  throw new InvalidOptionError(
    `"${name}" has no shard ${shard} any more: its processes have ${count} numbered shards now, ` +
      `from 0 to ${count - 1}. Pin one of these, or give the processes more shards first`,
  );
}

function requireMember({ name, members }: ShardsStatus, id: string): void {
  const own = members.filter((member) => member.id === id);
  if (own.length === 0) {
    const ids = members.map((member) => `"${member.id}"`).sort();
    const known = ids.join(', ');
    throw new RefusedError(
      `no process "${id}" takes part in the shards "${name}"; ` +
        (known === '' ? 'none does' : `these do: ${known}`),
    );
  }
  if (own.every(({ drained: isOut }) => isOut)) throw isDrained(id, name);
}

function isDrained(id: string, name: string): RefusedError {
  return new RefusedError(
    `"${id}" gives all of its shards of "${name}" away: it is drained, or it leaves. Let it take part ` +
      'again first, or choose another process',
  );
}
