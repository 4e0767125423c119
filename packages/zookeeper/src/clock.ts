/** Time as the client sees it; a test may give it another one. */
export interface Clock {
  /** Milliseconds (with a fraction) that never step; common to all processes of one machine. On
   *  Linux it stands still while the host is suspended. */
  monotonicMs(): number;
  /** Milliseconds since 1970. May step; counts the time a host was suspended. */
  wallMs(): number;
  /** Calls `callback` once, `delayMs` (0 to 2^31 - 1) from now at the earliest. */
  setTimer(callback: () => void, delayMs: number): Timer;
}

export interface Timer {
  /** Idempotent; after it the callback does not run. */
  cancel(): void;
}

/** Both clocks, read together. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function readClocks(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/** The machine's clocks. `hrtime` and not `performance.now()`: its origin is common to processes. */
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
