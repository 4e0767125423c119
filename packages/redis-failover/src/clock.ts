import type { Clock, Instant } from '@incumbent/zookeeper';

/** Both clocks, read together. */
export function readClocks(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/**
 * The machine's clocks. The monotonic one has the same origin as `sentAt` of the ZooKeeper client.
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

/** Resolves `ms` from now, or when `signal` aborts. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      timer.cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimer(end, ms);
    signal.addEventListener('abort', end);
  });
}
