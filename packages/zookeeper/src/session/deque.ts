/** A queue that can grow at both ends, in a ring whose size is a power of two. */
export class Deque<T> {
  #items: (T | undefined)[] = new Array(16);
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get first(): T | undefined {
    // Unused places are undefined.
    return this.#items[this.#head];
  }

  /** The item at `index` from the front, which must exist. */
  at(index: number): T {
    return this.#items[(this.#head + index) & (this.#items.length - 1)] as T;
  }

  push(item: T): void {
    if (this.#length === this.#items.length) this.#grow();
    this.#items[(this.#head + this.#length) & (this.#items.length - 1)] = item;
    this.#length += 1;
  }

  unshift(item: T): void {
    if (this.#length === this.#items.length) this.#grow();
    this.#head = (this.#head - 1) & (this.#items.length - 1);
    this.#items[this.#head] = item;
    this.#length += 1;
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#items.length - 1);
    this.#length -= 1;
    return item;
  }

  /** Keeps only the items for which `keep` is true, in their order. */
  filter(keep: (item: T) => boolean): void {
    const kept: T[] = [];
    for (let i = 0; i < this.#length; i += 1) {
      const item = this.at(i);
      if (keep(item)) kept.push(item);
    }
    this.#items = new Array(16);
    this.#head = 0;
    this.#length = 0;
    for (const item of kept) this.push(item);
  }

  #grow(): void {
    const larger: (T | undefined)[] = new Array(this.#items.length * 2);
    for (let i = 0; i < this.#length; i += 1) larger[i] = this.at(i);
    this.#items = larger;
    this.#head = 0;
  }
}
