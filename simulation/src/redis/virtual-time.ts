import type { Cancel, Scheduler } from './scheduler.ts';

interface Due {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** Time that passes when it is told to: for the model alone, where no simulation drives it. */
export class VirtualTime implements Scheduler {
  readonly random: () => number;
  /** A binary heap: earlier first, and in the order of the calls. */
  readonly #heap: Due[] = [];
  #nowMs = 0;
  #calls = 0;

  constructor(random: () => number) {
    this.random = random;
  }

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): Cancel {
    const due = { atMs: this.#nowMs + delayMs, order: this.#calls, run, isCancelled: false };
    this.#calls += 1;
    this.#heap.push(due);
    this.#rise(this.#heap.length - 1);
    return () => {
      due.isCancelled = true;
    };
  }

  /** Runs what is due within so many milliseconds. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const [first] = this.#heap;
      if (first === undefined || first.atMs > untilMs) break;
      this.#takeFirst();
      this.#nowMs = first.atMs;
      if (!first.isCancelled) first.run();
    }
    this.#nowMs = untilMs;
  }

  #takeFirst(): void {
    const last = this.#heap.pop() as Due;
    if (this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  #rise(from: number): void {
    for (let at = from; at > 0; ) {
      const above = (at - 1) >> 1;
      if (!this.#isBefore(at, above)) return;
      this.#swap(at, above);
      at = above;
    }
  }

  #sink(from: number): void {
    for (let at = from; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let first = at;
      if (left < this.#heap.length && this.#isBefore(left, first)) first = left;
      if (right < this.#heap.length && this.#isBefore(right, first)) first = right;
      if (first === at) return;
      this.#swap(at, first);
      at = first;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [x, y] = [this.#heap[a] as Due, this.#heap[b] as Due];
    return x.atMs < y.atMs || (x.atMs === y.atMs && x.order < y.order);
  }

  #swap(a: number, b: number): void {
    const held = this.#heap[a] as Due;
    this.#heap[a] = this.#heap[b] as Due;
    this.#heap[b] = held;
  }
}
