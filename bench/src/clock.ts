/** CLOCK_MONOTONIC in ms: all processes of a machine share its origin. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * A random pause, so that the next step falls on another place of a 100 ms or 3 s cycle each time.
 */
export function jitter(ms: number): number {
  return Math.random() * ms;
}
