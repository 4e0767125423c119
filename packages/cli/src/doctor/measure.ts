import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatDuration } from 'incumbent';

export interface Distribution {
  readonly samples: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** @param samplesMs at least one */
export function distributionOf(samplesMs: readonly number[]): Distribution {
  const sorted = [...samplesMs].sort((a, b) => a - b);
  // The nearest rank: a value that was measured, the largest one when there are few.
  const rank = (fraction: number) => sorted[Math.ceil(fraction * sorted.length) - 1] ?? Number.NaN;
  return {
    samples: sorted.length,
    medianMs: rank(0.5),
    p99Ms: rank(0.99),
    maxMs: rank(1),
  };
}

export function describeDistribution({ samples, medianMs, p99Ms, maxMs }: Distribution): string {
  const [median, p99, max] = [medianMs, p99Ms, maxMs].map(formatDuration);
  return `${samples} times, median ${median}, p99 ${p99}, max ${max}`;
}

/**
 * Runs `operation` up to `count` times, one after the other, and not for longer than about
 * `enoughMs`: an object store would take minutes.
 */
export async function sample(
  count: number,
  enoughMs: number,
  operation: (i: number) => Promise<unknown>,
): Promise<Distribution> {
  const samplesMs: number[] = [];
  const beganMs = performance.now();
  for (let i = 0; i < count; i += 1) {
    const startMs = performance.now();
    await operation(i);
    const endMs = performance.now();
    samplesMs.push(endMs - startMs);
    if (endMs - beganMs > enoughMs) break;
  }
  return distributionOf(samplesMs);
}

const resolutionMs = 10;

/** How late timers fire in this process: the machine's share of what a leader will see. */
export async function watchEventLoop(forMs: number, signal: AbortSignal): Promise<Distribution> {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  histogram.enable();
  try {
    await sleep(forMs, undefined, { signal });
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    histogram.disable();
  }
  // It counts the time it meant to sleep as well.
  const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - resolutionMs);
  return {
    samples: histogram.count,
    medianMs: late(histogram.percentile(50)),
    p99Ms: late(histogram.percentile(99)),
    maxMs: histogram.count === 0 ? 0 : late(histogram.max),
  };
}
