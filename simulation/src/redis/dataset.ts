/** The keys of one server. All of them are strings, in database 0, and none expires. */
export class Dataset {
  readonly #keys: Map<string, string>;

  constructor(keys: Iterable<readonly [string, string]> = []) {
    this.#keys = new Map(keys);
  }

  get size(): number {
    return this.#keys.size;
  }

  get keys(): readonly string[] {
    return [...this.#keys.keys()];
  }

  get(key: string): string | undefined {
    return this.#keys.get(key);
  }

  /** @param value undefined takes the key away. @returns what was there before */
  put(key: string, value: string | undefined): string | undefined {
    const before = this.#keys.get(key);
    if (value === undefined) this.#keys.delete(key);
    else this.#keys.set(key, value);
    return before;
  }

  clear(): void {
    this.#keys.clear();
  }

  copy(): Dataset {
    return new Dataset(this.#keys);
  }

  /** Two of them are the same if these are. */
  sorted(): readonly (readonly [string, string])[] {
    return [...this.#keys].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}
