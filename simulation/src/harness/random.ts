/**
 * Pseudo-random numbers from a seed: the same seed gives the same schedule for ever, on every
 * machine. The generator is sfc32 (Chris Doty-Humphrey, public domain), seeded by splitmix32.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, stream: number = 0) {
    let state = (seed ^ Math.imul(stream + 1, 0x9e3779b9)) | 0;
    const splitmix = () => {
      state = (state + 0x9e3779b9) | 0;
      let mixed = state ^ (state >>> 16);
      mixed = Math.imul(mixed, 0x21f0aaad);
      mixed ^= mixed >>> 15;
      mixed = Math.imul(mixed, 0x735a2d97);
      return mixed ^ (mixed >>> 15);
    };
    this.#a = splitmix();
    this.#b = splitmix();
    this.#c = splitmix();
    for (let i = 0; i < 12; i += 1) this.next();
  }

  /** 0 ≤ x < 1. */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return (sum >>> 0) / 4_294_967_296;
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** A whole number, 0 ≤ n < `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(list: readonly T[]): T {
    const chosen = list[this.below(list.length)];
    if (chosen === undefined) throw new RangeError('nothing to pick from');
    return chosen;
  }

  /** Each entry as often as its weight says. */
  weighted<T>(entries: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.next() * entries.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of entries) {
      left -= weight;
      if (left < 0) return value;
    }
    return (entries.at(-1) as readonly [number, T])[1];
  }

  /** Times between independent events that come every `mean` on average. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }

  shuffle<T>(list: T[]): T[] {
    for (let i = list.length - 1; i > 0; i -= 1) {
      const j = this.below(i + 1);
      const held = list[i] as T;
      list[i] = list[j] as T;
      list[j] = held;
    }
    return list;
  }
}
