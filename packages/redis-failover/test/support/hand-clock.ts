import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from '@incumbent/zookeeper';

interface Waiting {
  readonly atMs: number;
  readonly callback: () => void;
}

/** Two clocks and timers that stand still until a test moves them. */
export class HandClock implements Clock {
  #monotonicMs: number;
  #wallAheadMs = 1_000_000_000;
  readonly #waiting = new Set<Waiting>();

  constructor(monotonicMs = 5_000) {
    this.#monotonicMs = monotonicMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#monotonicMs + this.#wallAheadMs;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const waiting: Waiting = { atMs: this.#monotonicMs + delayMs, callback };
    this.#waiting.add(waiting);
    return { cancel: () => this.#waiting.delete(waiting) };
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#waiting.size;
  }

  /** The due times of all timers, in ms from now, the earliest first. */
  get due(): number[] {
    const all = [...this.#waiting].map(({ atMs }) => atMs - this.#monotonicMs);
    return all.sort((a, b) => a - b);
  }

  /**
   * Lets time pass. Each timer runs in its turn, and all that it starts has ended before the next.
   */
  async pass(ms: number): Promise<void> {
    const untilMs = this.#monotonicMs + ms;
    await atRest();
    for (;;) {
      const [next] = [...this.#waiting].sort((a, b) => a.atMs - b.atMs);
      if (next === undefined || next.atMs > untilMs) break;
      this.#waiting.delete(next);
      this.#monotonicMs = Math.max(this.#monotonicMs, next.atMs);
      next.callback();
      await atRest();
    }
    this.#monotonicMs = untilMs;
    await atRest();
  }

  /** Suspends the host: only the wall clock counts that time. */
  suspend(ms: number): void {
    this.#wallAheadMs += ms;
  }
}

/** Waits until everything that needs no time has happened. */
export async function atRest(): Promise<void> {
  for (let turns = 0; turns < 3; turns += 1) await nextTurn();
}

export type Settled =
  | { readonly state: 'pending' }
  | { readonly state: 'resolved'; readonly value: unknown }
  | { readonly state: 'rejected'; readonly error: Error };

/** The state of a promise so far. */
export function watch(promise: Promise<unknown>): { now: Settled } {
  const watched: { now: Settled } = { now: { state: 'pending' } };
  promise.then(
    (value) => {
      watched.now = { state: 'resolved', value };
    },
    (error: Error) => {
      watched.now = { state: 'rejected', error };
    },
  );
  return watched;
}
