import { setTimeout as pause } from 'node:timers/promises';
import type { Clock, Timer } from '../../src/clock.ts';

/** A limit for what must come at some time. It only turns a hang into a failure. */
const hangMs = 30_000;

interface Due {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that only a test moves. */
export class TestClock implements Clock {
  #nowMs = 1_000_000;
  readonly #timers: Set<Due> = new Set();

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return Date.UTC(2026, 0, 1) + this.#nowMs;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const timer = { atMs: this.#nowMs + delayMs, callback };
    this.#timers.add(timer);
    return { cancel: () => this.#timers.delete(timer) };
  }

  /** The number of timers that are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Suspends the process: time passes, and no timer runs. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  /**
   * Runs the timers that are due, the earliest first. Promises that this settles go on before the
   * next one.
   */
  async runDue(): Promise<void> {
    for (let due = this.#next(); due !== undefined; due = this.#next()) {
      this.#timers.delete(due);
      due.callback();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Runs the timers that are due, all in this turn of the event loop. */
  runDueAtOnce(): void {
    for (let due = this.#next(); due !== undefined; due = this.#next()) {
      this.#timers.delete(due);
      due.callback();
    }
  }

  /**
   * Lets so much time pass, in small steps, each long enough for a round trip.
   * @param realMs how long each step takes: more if a real server has to answer meanwhile
   */
  async advance(ms: number, stepMs = 20, realMs = 1): Promise<void> {
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs; ) {
      this.#nowMs = Math.min(endMs, this.#nowMs + stepMs);
      await this.runDue();
      await pause(realMs);
    }
  }

  /** Lets time pass until the answer is true. */
  async runUntil(what: string, ask: () => boolean, stepMs = 20, realMs = 1): Promise<void> {
    const deadlineMs = performance.now() + hangMs;
    while (!ask()) {
      if (performance.now() > deadlineMs) throw new Error(`never: ${what}`);
      await this.advance(stepMs, stepMs, realMs);
    }
  }

  /** Lets time pass until `promise` is settled. */
  async runUntilSettled<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    await this.runUntil('the call settles', () => settled);
    return promise;
  }

  #next(): Due | undefined {
    let next: Due | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs <= this.#nowMs && (next === undefined || timer.atMs < next.atMs)) next = timer;
    }
    return next;
  }
}

/** Asks until the answer is true, while the clock of the test stands still. */
export async function until(what: string, ask: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + hangMs;
  while (!ask()) {
    if (performance.now() > deadlineMs) throw new Error(`never: ${what}`);
    await pause(1);
  }
}
