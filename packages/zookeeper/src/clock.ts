/** The client's source of time. A test may supply another one. */
export interface Clock {
  /**
   * Milliseconds (with a fraction) that never step. All processes of one machine share their
   * origin. On Linux this clock stands still while the host is suspended.
   */
  monotonicMs(): number;
  /**
   * Milliseconds since 1970. This clock may step, and counts the time in which a host was
   * suspended.
   */
  wallMs(): number;
  /** Calls `callback` once, at the earliest `delayMs` (0 to 2^31 - 1) from now. */
  setTimer(callback: () => void, delayMs: number): Timer;
}

/** A timer that was set. */
export interface Timer {
  /** Cancels it: the callback does not run afterwards. Idempotent. */
  cancel(): void;
}

/** The time on both clocks, read together. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function readClocks(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/**
 * The machine's clocks. It uses `hrtime`, because the origin of `performance.now()` differs between
 * processes.
 */
export const systemClock: Clock = {
  monotonicMs() {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1e3 + nanoseconds / 1e6;
  },
  wallMs() {
    return Date.now();
  },
  setTimer(callback, delayMs) {
    const timer = setTimeout(callback, Math.ceil(delayMs));
    return { cancel: () => clearTimeout(timer) };
  },
};
