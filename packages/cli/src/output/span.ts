import { formatDuration } from 'incumbent';

/**
 * A span of time, only as exact as people need it: `2.5ms`, `250ms`, `12.3s`, `3m 12s`, `2h 5m`,
 * `3d 4h`.
 */
export function span(ms: number): string {
  if (!Number.isFinite(ms)) return '?';
  if (ms < 0) return `-${span(-ms)}`;
  const [, stepMs] = steps.find(([belowMs]) => ms < belowMs) ?? [0, 3_600_000];
  return formatDuration(Math.round(ms / stepMs) * stepMs);
}

/** A span that is shorter is shown in these steps, so that it has two units at the most. */
const steps: readonly (readonly [belowMs: number, stepMs: number])[] = [
  [10, 0.1],
  [999.5, 1],
  [59_950, 100],
  [3_599_500, 1_000],
  [86_370_000, 60_000],
];
