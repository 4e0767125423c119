/** Smallest first; entries that compare equal come out in the order in which they went in. */
export class Heap<T> {
  readonly #keys: number[] = [];
  readonly #orders: number[] = [];
  readonly #values: T[] = [];
  #nextOrder = 0;

  get size(): number {
    return this.#values.length;
  }

  get firstKey(): number {
    return this.#keys[0] ?? Number.POSITIVE_INFINITY;
  }

  get first(): T | undefined {
    return this.#values[0];
  }

  push(key: number, value: T): void {
    const order = this.#nextOrder++;
    let at = this.#values.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#precedes(key, order, parent)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#keys[at] = key;
    this.#orders[at] = order;
    this.#values[at] = value;
  }

  pop(): T | undefined {
    const first = this.#values[0];
    const key = this.#keys.pop();
    const order = this.#orders.pop();
    const value = this.#values.pop();
    const length = this.#values.length;
    if (length === 0 || key === undefined || order === undefined) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && this.#follows(child, child + 1)) child += 1;
      if (this.#precedes(key, order, child)) break;
      this.#move(child, at);
      at = child;
    }
    this.#keys[at] = key;
    this.#orders[at] = order;
    this.#values[at] = value as T;
    return first;
  }

  #precedes(key: number, order: number, index: number): boolean {
    const other = this.#keys[index] as number;
    return key < other || (key === other && order < (this.#orders[index] as number));
  }

  #follows(index: number, other: number): boolean {
    return this.#precedes(this.#keys[other] as number, this.#orders[other] as number, index);
  }

  #move(from: number, to: number): void {
    this.#keys[to] = this.#keys[from] as number;
    this.#orders[to] = this.#orders[from] as number;
    this.#values[to] = this.#values[from] as T;
  }
}
