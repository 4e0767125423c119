/** A limit for what must come at some time. It only turns a hang into a failure. */
const hangMs = 150_000;

/** Many tests wait at the same time, on few processors. */
const pollMs = 25;

/** CLOCK_MONOTONIC in ms: all processes of a machine share its origin. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/**
 * Asks until the answer is neither false nor undefined.
 * @param story what has happened so far, for the error
 */
export async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  story: () => string = () => '',
): Promise<T> {
  const deadlineMs = monotonicMs() + hangMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (monotonicMs() > deadlineMs) throw new Error(`never: ${what}\n${story()}`.trim());
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** Lets so much time pass. For faults that last, not for something to settle. */
export async function lasting(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
