/** Pure judgements about what was measured. Each gives the problem, or undefined. */

/** The time that a timer and a busy machine may cost beyond measured stalls. */
export const slackMs = 250;

export interface Expiry {
  /** When what the server last acknowledged was sent, by the client's own replies. */
  readonly lastAcknowledgedMs: number;
  readonly timeoutMs: number;
  readonly toldAtMs: number;
  /** How long this process stood still between the two. */
  readonly stalledMs: number;
}

/** 0.95 of the timeout is what the client aims at; beyond the whole of it there is no excuse. */
export function judgeExpiry(expiry: Expiry): string | undefined {
  const { lastAcknowledgedMs, timeoutMs, toldAtMs, stalledMs } = expiry;
  const tookMs = toldAtMs - lastAcknowledgedMs - stalledMs;
  if (tookMs <= timeoutMs) return undefined;
  return `told ${tookMs.toFixed(0)} ms after it (stalls left out), the timeout is ${timeoutMs} ms`;
}

const MiB = 1024 * 1024;

/**
 * Memory after collection, at the end of each round. The first third warms up; then the second half
 * may not be above the first by more than the bound.
 * @param boundBytes for the growth from half to half
 */
export function judgeMemory(samples: readonly number[], boundBytes: number): string | undefined {
  const warm = samples.slice(Math.floor(samples.length / 3));
  const half = Math.floor(warm.length / 2);
  if (half === 0) return `${samples.length} samples are too few to tell`;
  const [before, after] = [median(warm.slice(0, half)), median(warm.slice(-half))];
  if (after - before <= boundBytes) return undefined;
  const show = (bytes: number) => `${(bytes / MiB).toFixed(2)} MiB`;
  return `from ${show(before)} to ${show(after)} in the warm part, ${show(boundBytes)} are allowed`;
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** Kinds of resources (`process.getActiveResourcesInfo`) of which there are more than before. */
export function leftBehind(before: readonly string[], after: readonly string[]): string[] {
  const count = (all: readonly string[], kind: string) => all.filter((one) => one === kind).length;
  return [...new Set(after)]
    .filter((kind) => count(after, kind) > count(before, kind))
    .map((kind) => `${count(after, kind)} of ${kind}, ${count(before, kind)} before`);
}

interface Count {
  readonly requests: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly outstanding: number;
  readonly queued: number;
  readonly queuedBytes: number;
  readonly inFlight: number;
}

/** Of a client that nobody asks anything. */
export function judgeCounters(counters: Count): string[] {
  const { requests, succeeded, failed, outstanding, queued, queuedBytes, inFlight } = counters;
  const problems: string[] = [];
  if (requests !== succeeded + failed + outstanding) {
    problems.push(`${requests} requests, but ${succeeded} + ${failed} + ${outstanding}`);
  }
  for (const [name, value] of Object.entries({ outstanding, queued, queuedBytes, inFlight })) {
    if (value !== 0) problems.push(`${name} is ${value} when nothing is asked`);
  }
  return problems;
}
