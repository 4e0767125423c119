/** Lists of shards. A shard has a number in its list: its place among the sorted names. */
import { createHash } from 'node:crypto';
import { InvalidOptionError } from 'incumbent';
import { checkName, describeValue } from 'incumbent/internal';
import { mostShards } from './assign.ts';
import type { ShardList } from './slot.ts';

const mostNameBytes = 200;

/** The shards of a process, by their numbers and by their names. */
export interface Names<Shard> {
  readonly list: ShardList;
  /** Sorted. Undefined: the shards have no names. */
  readonly names?: readonly string[];
  nameOf(number: number): Shard;
  /** @throws InvalidOptionError for a shard that is not in the list */
  numberOf(shard: Shard): number;
}

/** @throws InvalidOptionError */
export function namesOf(shards: unknown): Names<string | number> {
  if (typeof shards === 'number') return numbered(shards);
  if (Array.isArray(shards)) return named(shards);
  throw new InvalidOptionError(
    `shards must be a number such as 256, or a list of names, not ${describeValue(shards)}`,
  );
}

function numbered(count: number): Names<string | number> {
  if (!Number.isInteger(count) || count < 1 || count > mostShards) {
    throw new InvalidOptionError(
      `shards must be a whole number from 1 to ${mostShards}, not ${describeValue(count)}`,
    );
  }
  return byNumber({ count, digest: 0n });
}

/** The shards of any list by their numbers, also where they have names. */
export function byNumber(list: ShardList): Names<string | number> {
  const { count } = list;
  return {
    list,
    nameOf: (number) => number,
    numberOf(shard) {
      if (typeof shard === 'number' && Number.isInteger(shard) && shard >= 0 && shard < count) {
        return shard;
      }
      throw new InvalidOptionError(
        `there is no shard ${describeValue(shard)}: shards have the numbers 0 to ${count - 1}`,
      );
    },
  };
}

function named(given: readonly unknown[]): Names<string | number> {
  if (given.length < 1 || given.length > mostShards) {
    throw new InvalidOptionError(
      `there must be 1 to ${mostShards} shards, and the list has ${given.length}`,
    );
  }
  const names = given.map((name) => checkName('the name of a shard', name, mostNameBytes));
  names.sort(byText);
  const numbers = new Map<string, number>();
  for (const [number, name] of names.entries()) {
    if (numbers.has(name)) {
      throw new InvalidOptionError(`the list of shards names "${name}" twice: each shard is one`);
    }
    numbers.set(name, number);
  }
  return {
    list: { count: names.length, digest: digestOf(names) },
    names,
    nameOf: (number) => names[number] as string,
    numberOf(shard) {
      const number = numbers.get(shard as string);
      if (number !== undefined) return number;
      throw new InvalidOptionError(
        `there is no shard ${describeValue(shard)} in the list of ${names.length}`,
      );
    },
  };
}

/** Never 0, which is for shards without names. */
function digestOf(names: readonly string[]): bigint {
  const hash = createHash('sha256').update(names.join('\n')).digest();
  return hash.readBigUInt64LE() | 1n;
}

export function sameList(a: ShardList, b: ShardList): boolean {
  return a.count === b.count && a.digest === b.digest;
}

export function describeList({ count, digest }: ShardList): string {
  return `${count} ${digest === 0n ? 'numbered' : 'named'} shards`;
}

/** By code units: the same on every machine, whatever its locale. */
function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
