/**
 * The names of shards, by number. A name gets its number once, and the number is never given to
 * another name. So an entry of a slot means the same shard to every process, whatever list it has read.
 */
import { InvalidOptionError } from 'incumbent';
import { describeValue } from 'incumbent/internal';
import { nobody } from './assign.ts';
import type { Names } from './lists.ts';
import { byText, digestOf } from './lists.ts';
import type { ShardList } from './slot.ts';

/** So many numbers a set gives out in its life. */
export const mostNumbers: number = 1 << 20;

/** So many names are in one record. The smallest room for a record is 256 KiB, on Kubernetes. */
export const namesInPart = 500;

/** The names in one record. */
export interface RosterPart {
  /** In the order of their numbers. '': this number has no name. */
  readonly names: readonly string[];
  /** Places in `names` whose shards are in the list no more. */
  readonly retired: ReadonlySet<number>;
}

export class Roster implements Names<string | number> {
  readonly list: ShardList;
  /** The list that this process was given, sorted. Or the function that tells it. */
  readonly given: readonly string[] | (() => unknown);
  readonly #names: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #retired = new Set<number>();
  /** As the store has them. A record that was set back lacks names that this process knows. */
  readonly #parts = new Map<number, RosterPart>();
  #digest: bigint | undefined;

  constructor(list: ShardList, given: readonly string[] | (() => unknown)) {
    this.list = list;
    this.given = given;
  }

  get size(): number {
    return this.#names.length;
  }

  get digest(): bigint {
    if (typeof this.given !== 'function') return this.list.digest;
    this.#digest ??= digestOf([...this.all()].sort(byText));
    return this.#digest;
  }

  all(): readonly string[] {
    if (typeof this.given !== 'function') return this.given;
    return this.#names.filter((_name, number) => this.isListed(number));
  }

  /** '': the number has no name. */
  byNumber(): readonly string[] {
    return [...this.#names];
  }

  isListed(number: number): boolean {
    const name = this.#names[number] ?? '';
    return name !== '' && this.#numbers.get(name) === number && !this.#retired.has(number);
  }

  nameOf(number: number): string | undefined {
    const name = this.#names[number];
    return name === '' ? undefined : name;
  }

  numberOf(shard: string | number): number {
    const name = shard as string;
    if (typeof this.given !== 'function' && textIn(this.given, name) === undefined) {
      const { length } = this.given;
      throw new InvalidOptionError(
        `there is no shard ${describeValue(shard)} in the list of ${length}`,
      );
    }
    return this.#numbers.get(name) ?? nobody;
  }

  /** A record of names was read or written. */
  learn(index: number, part: RosterPart): void {
    const { retired } = part;
    const first = index * namesInPart;
    // Each read brings another copy of all names.
    const names = part.names.map((name, i) => this.#textOf(first + i, name));
    this.#parts.set(index, { names, retired });
    while (this.#names.length < first) this.#names.push('');
    for (const [i, name] of names.entries()) {
      const number = first + i;
      const before = this.#names[number] ?? '';
      // It was known already. A list that was set back does not make it unknown.
      if (before === '') {
        this.#names[number] = name;
        if (name !== '') this.#numbers.set(name, number);
      }
      if (retired.has(i)) this.#retired.add(number);
      else this.#retired.delete(number);
    }
    this.#digest = undefined;
  }

  #textOf(number: number, name: string): string {
    const known = this.#names[number];
    if (known === name) return known;
    return (typeof this.given === 'function' ? undefined : textIn(this.given, name)) ?? name;
  }

  /**
   * The records that are to be written so that the list has these names.
   * @param wanted sorted
   * @param numbers so many numbers were given out. Some of their names may be lost
   * @throws InvalidOptionError
   */
  changes(wanted: readonly string[], numbers: number): ReadonlyMap<number, RosterPart> {
    const isWanted = new Set(wanted);
    const names = [...this.#names];
    while (names.length < numbers) names.push('');
    for (const name of wanted) if (!this.#numbers.has(name)) names.push(name);
    if (names.length > mostNumbers) {
      throw new InvalidOptionError(
        `the list has ${names.length} shards with those of before, and at most ${mostNumbers} are ` +
          'possible in the life of a set: begin a new one, with another name',
      );
    }
    const parts = new Map<number, RosterPart>();
    for (let index = 0; index * namesInPart < names.length; index += 1) {
      const first = index * namesInPart;
      const own = names.slice(first, first + namesInPart);
      const retired = new Set<number>();
      for (const [i, name] of own.entries()) {
        // A name whose first number was lost has two. Only one of them counts.
        const isFirst = (this.#numbers.get(name) ?? first + i) === first + i;
        if (name !== '' && !(isFirst && isWanted.has(name))) retired.add(i);
      }
      const before = this.#parts.get(index);
      const isSame =
        before?.names.length === own.length &&
        own.every(
          (name, i) => name === before.names[i] && retired.has(i) === before.retired.has(i),
        );
      if (!isSame) parts.set(index, { names: own, retired });
    }
    return parts;
  }
}

/**
 * The text itself that stands in the list.
 * @param names sorted
 */
function textIn(names: readonly string[], name: string): string | undefined {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (byText(names[middle] ?? '', name) < 0) low = middle + 1;
    else high = middle;
  }
  return names[low] === name ? names[low] : undefined;
}
