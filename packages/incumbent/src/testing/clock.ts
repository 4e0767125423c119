import { describeValue } from '../base/candidate.ts';
import type { Clock, Timer } from '../base/clock.ts';
import type { Duration } from '../base/duration.ts';
import { parseDuration } from '../base/duration.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { sleep } from '../base/wait.ts';

/** The options of a `SimulatedClock`. */
export interface SimulatedClockOptions {
  /** Wall clock at the start, ms since 1970. Default 2001-09-09. */
  readonly wallMs?: number;
}

interface Entry {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/**
 * A clock that moves only when told to. Code that waits on it takes no real time.
 *
 * ```ts
 * const clock = new SimulatedClock();
 * const election = createElection({ name: 'jobs', backend: memory(), clock });
 * await clock.advance('15s'); // runs every timer that falls due, in order, and their promises
 * ```
 */
export class SimulatedClock implements Clock {
  #monotonicMs = 0;
  #wallMs: number;
  #order = 0;
  #timers = new Set<Entry>();

  constructor(options: SimulatedClockOptions = {}) {
    this.#wallMs = options.wallMs ?? 1_000_000_000_000;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    if (!(delayMs >= 0 && delayMs < 2 ** 31)) {
      throw new RangeError(`a timer takes 0 to 2^31 - 1 ms, not ${delayMs}`);
    }
    this.#order += 1;
    const entry = { dueMs: this.#monotonicMs + delayMs, order: this.#order, callback };
    this.#timers.add(entry);
    return { cancel: () => this.#timers.delete(entry) };
  }

  /**
   * Resolves when this much of the clock's time has passed: for work under test. Rejects with
   * `signal.reason` when `signal` aborts, and with InvalidOptionError.
   */
  async sleep(by: Duration, signal: AbortSignal = new AbortController().signal): Promise<void> {
    await sleep(this, parseDuration('by', by), signal);
  }

  /** How many timers are pending. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /**
   * Moves both clocks. Runs each timer at its time, and then the promises that it resolves. Does not
   * wait for sockets, files or `setImmediate`: fake those, or advance in a loop.
   * @throws InvalidOptionError for a value that is no duration, before any clock moves
   */
  async advance(by: Duration): Promise<void> {
    const untilMs = this.#monotonicMs + parseDuration('by', by);
    await settle();
    for (;;) {
      const next = this.#next(untilMs);
      if (next === undefined) break;
      this.#move(next.dueMs - this.#monotonicMs);
      this.#timers.delete(next);
      next.callback();
      await settle();
    }
    this.#move(untilMs - this.#monotonicMs);
    await settle();
  }

  /**
   * Makes the event loop stand still: both clocks move, and no timer runs. Timers that fell due run
   * at the next `advance`, late.
   */
  stall(by: Duration): void {
    this.#move(parseDuration('by', by));
  }

  /** Suspends the host: only the wall clock moves, as on Linux. */
  suspend(by: Duration): void {
    this.#wallMs += parseDuration('by', by);
  }

  /**
   * Sets the wall clock: forward, or back with a negative number of ms. Any distance is allowed,
   * because clocks may be wrong by years.
   */
  stepWall(by: Duration): void {
    const ms = typeof by === 'number' ? by : parseDuration('by', by);
    if (!Number.isFinite(ms)) {
      throw new InvalidOptionError(`by must be finite, not ${describeValue(by)}`);
    }
    this.#wallMs += ms;
  }

  #move(ms: number): void {
    if (ms <= 0) return;
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }

  #next(untilMs: number): Entry | undefined {
    let next: Entry | undefined;
    for (const entry of this.#timers) {
      if (entry.dueMs > untilMs) continue;
      if (
        next === undefined ||
        entry.dueMs < next.dueMs ||
        (entry.dueMs === next.dueMs && entry.order < next.order)
      ) {
        next = entry;
      }
    }
    return next;
  }
}

/**
 * Resolves once no microtask is left: every promise that can settle without I/O has settled.
 * `nextTick` callbacks run only when the microtask queue is empty.
 */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    queueMicrotask(() => process.nextTick(resolve));
  });
}
