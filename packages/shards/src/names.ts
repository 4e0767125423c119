/** The shards that a process is given: their number, their names, or a function that tells them. */
import { InvalidOptionError } from 'incumbent';
import { checkName, describeValue } from 'incumbent/internal';
import { mostShards } from './assign.ts';
import type { Names } from './lists.ts';
import { byNumber, byText, changing, digestOf } from './lists.ts';
import { Roster } from './roster.ts';

const mostNameBytes = 200;

/** @throws InvalidOptionError */
export function namesOf(shards: unknown): Names<string | number> {
  if (typeof shards === 'number') return numbered(shards);
  if (Array.isArray(shards)) {
    const names = checkedNames(shards);
    return new Roster({ count: names.length, digest: digestOf(names) }, names);
  }
  if (typeof shards === 'function') return new Roster(changing, shards as () => unknown);
  throw new InvalidOptionError(
    'shards must be a number such as 256, a list of names, or a function that tells it, not ' +
      describeValue(shards),
  );
}

function numbered(count: number): Names<string | number> {
  if (!Number.isInteger(count) || count < 1 || count > mostShards) {
    throw new InvalidOptionError(
      `shards must be a whole number from 1 to ${mostShards}, not ${describeValue(count)}`,
    );
  }
  return byNumber(
    { count, digest: 0n },
    { size: count, digest: 0n, isListed: (number) => number < count },
  ) as Names<string | number>;
}

/**
 * Sorted.
 * @throws InvalidOptionError
 */
export function checkedNames(given: unknown): readonly string[] {
  if (!Array.isArray(given)) {
    throw new InvalidOptionError(`the list of shards must be a list, not ${describeValue(given)}`);
  }
  if (given.length < 1 || given.length > mostShards) {
    throw new InvalidOptionError(
      `there must be 1 to ${mostShards} shards, and the list has ${given.length}`,
    );
  }
  const names = given.map((name) => checkName('the name of a shard', name, mostNameBytes));
  names.sort(byText);
  for (const [i, name] of names.entries()) {
    if (name !== names[i + 1]) continue;
    throw new InvalidOptionError(`the list of shards names "${name}" twice: each shard is one`);
  }
  return names;
}
