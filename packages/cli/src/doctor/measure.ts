import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatDuration } from 'incumbent';

const enoughForP99 = 20;

/** Rounded: behind the microseconds there is noise. */
export interface Distribution {
  readonly samples: number;
  readonly medianMs: number;
  /** Undefined where there are too few samples to tell it from the maximum. */
  readonly p99Ms?: number;
  readonly maxMs: number;
}

/** @param samplesMs at least one */
export function distributionOf(samplesMs: readonly number[]): Distribution {
  const sorted = [...samplesMs].sort((a, b) => a - b);
  // The nearest rank: a value that was measured, the largest one when there are few.
  const rank = (fraction: number) => sorted[Math.ceil(fraction * sorted.length) - 1] ?? Number.NaN;
  return rounded(sorted.length, rank(0.5), rank(0.99), rank(1));
}

function rounded(samples: number, medianMs: number, p99Ms: number, maxMs: number): Distribution {
  const round = (ms: number) => Math.round(ms * 1000) / 1000;
  return {
    samples,
    medianMs: round(medianMs),
    ...(samples < enoughForP99 ? {} : { p99Ms: round(p99Ms) }),
    maxMs: round(maxMs),
  };
}

export function describeDistribution({ samples, medianMs, p99Ms, maxMs }: Distribution): string {
  const p99 = p99Ms === undefined ? '' : `p99 ${formatDuration(p99Ms)}, `;
  return `${samples} times: median ${formatDuration(medianMs)}, ${p99}max ${formatDuration(maxMs)}`;
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

/** How late timers fire in this process: the machine's share of the delays of a leader. */
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
  return rounded(
    histogram.count,
    late(histogram.percentile(50)),
    late(histogram.percentile(99)),
    histogram.count === 0 ? 0 : late(histogram.max),
  );
}
