/** Lists of shards. A number means one shard for ever, whatever becomes of the list. */
import { createHash } from 'node:crypto';
import { InvalidOptionError } from 'incumbent';
import { describeValue } from 'incumbent/internal';
import type { ShardList } from './slot.ts';

/** Of lists that a function tells. Digests of names are odd, and numbered shards have 0. */
export const changing: ShardList = { count: 1, digest: 2n };

/** The shards of a process, by their numbers and by their names. */
export interface Names<Shard> {
  /** The list that this process was given. All processes of a set are given the same. */
  readonly list: ShardList;
  /** All numbers that this process knows are below it. */
  readonly size: number;
  /** Differs when the names in the list do. 0 for shards without names. */
  readonly digest: bigint;
  /** The shards in the list, as far as this process knows. */
  all(): readonly Shard[];
  /** False for a number whose shard is in the list no more. */
  isListed(number: number): boolean;
  /** Undefined: this process has not learnt it yet. */
  nameOf(number: number): Shard | undefined;
  /**
   * `nobody`: it has none, as far as this process knows.
   * @throws InvalidOptionError for a shard that is not in the list which this process was given
   */
  numberOf(shard: Shard): number;
}

/** Numbered shards, and others whose numbers people go by. */
export function byNumber(
  list: ShardList,
  names: Pick<Names<unknown>, 'size' | 'digest' | 'isListed'>,
): Names<number> {
  const all = Array.from({ length: names.size }, (_, number) => number);
  return {
    ...{ list, size: names.size, digest: names.digest },
    all: () => all.filter((number) => names.isListed(number)),
    isListed: (number) => names.isListed(number),
    nameOf: (number) => number,
    numberOf(shard) {
      if (Number.isInteger(shard) && shard >= 0 && shard < names.size) return shard;
      throw new InvalidOptionError(
        `there is no shard ${describeValue(shard)}: shards have the numbers 0 to ${names.size - 1}`,
      );
    },
  };
}

/**
 * Never 0 or 2, which are for shards without names and for lists that change.
 * @param names sorted
 */
export function digestOf(names: readonly string[]): bigint {
  const hash = createHash('sha256').update(names.join('\n')).digest();
  return hash.readBigUInt64LE() | 1n;
}

export function sameList(a: ShardList, b: ShardList): boolean {
  return a.count === b.count && a.digest === b.digest;
}

/** Between them, shards keep their numbers. A numbered shard is none of the shards with names. */
export function areAkin(a: ShardList, b: ShardList): boolean {
  return (a.digest === 0n) === (b.digest === 0n);
}

export function describeList(list: ShardList): string {
  if (sameList(list, changing)) return 'a list that a function tells';
  return `${list.count} ${list.digest === 0n ? 'numbered' : 'named'} shards`;
}

/** By code units: the same on every machine, whatever its locale. */
export function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
