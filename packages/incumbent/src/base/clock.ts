/**
 * Time as the library sees it. All code that waits or judges time takes a `Clock`. So the same code
 * runs on the machine's clocks, on a simulated clock in a test, and on the skewed clocks of the
 * simulation.
 */
export interface Clock {
  /**
   * Milliseconds, with a fraction, that never step. The origin is arbitrary, but common to all
   * processes of one machine. On Linux this clock stands still while the host is suspended.
   */
  monotonicMs(): number;
  /** Milliseconds since 1970. May step. Counts the time for which the host was suspended. */
  wallMs(): number;
  /**
   * Calls `callback` once, `delayMs` from now at the earliest.
   * @param delayMs 0 to 2^31 - 1. A longer delay is refused: Node would fire it after 1 ms.
   * @param background true: this timer alone does not keep the process alive
   */
  setTimer(callback: () => void, delayMs: number, background?: boolean): Timer;
}

/** A timer that was set with `Clock.setTimer`. */
export interface Timer {
  /** The callback does not run any more. A second call does nothing. */
  cancel(): void;
}

/** Both clocks, read together. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** The longest delay that Node's timers keep. They fire a longer one after 1 ms. */
export const maxTimerMs: number = 2 ** 31 - 1;

export function readClocks(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/** The machine's clocks. `hrtime` and not `performance.now()`: all processes share its origin. */
export const systemClock: Clock = {
  monotonicMs() {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1e3 + nanoseconds / 1e6;
  },
  wallMs() {
    return Date.now();
  },
  setTimer(callback, delayMs, background = false) {
    if (!(delayMs >= 0 && delayMs <= maxTimerMs)) {
      throw new RangeError(`a timer takes 0 to ${maxTimerMs} ms, not ${delayMs}`);
    }
    const timer = setTimeout(callback, Math.ceil(delayMs));
    if (background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
