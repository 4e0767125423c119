/** Numbers, what they are to be, and how they are shown. */

export type Unit =
  | 'ms'
  | '×'
  | '× D'
  | '% of a core'
  | 'KiB'
  | 'MiB'
  | 'per s'
  | 'per h'
  | 'bytes'
  | '';

/** One line of the result. */
export interface Figure {
  /** The benchmark it belongs to. */
  readonly benchmark: string;
  readonly name: string;
  readonly unit: Unit;
  /** The figure that is compared with the goal: the median, unless the name says otherwise. */
  readonly value: number;
  /** The samples behind it. */
  readonly spread: Spread;
  /** The value is to be at most this. */
  readonly goal?: number;
}

export interface Spread {
  readonly count: number;
  readonly min: number;
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
}

/** @param samples at least one */
export function spreadOf(samples: readonly number[]): Spread {
  const sorted = [...samples].sort((a, b) => a - b);
  return {
    count: sorted.length,
    min: quantile(sorted, 0),
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    max: quantile(sorted, 1),
  };
}

export function median(samples: readonly number[]): number {
  return spreadOf(samples).p50;
}

/** Between two samples it goes in a straight line, so that the median of two is their mean. */
function quantile(sorted: readonly number[], share: number): number {
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)];
  const above = sorted[Math.ceil(place)];
  if (below === undefined || above === undefined) throw new Error('no samples');
  return below + (above - below) * (place - Math.floor(place));
}

/** A figure that is the median of its samples. */
export function figureOf(
  benchmark: string,
  name: string,
  unit: Unit,
  samples: readonly number[],
  goal?: number,
): Figure {
  const spread = spreadOf(samples);
  const figure = { benchmark, name, unit, value: spread.p50, spread };
  return goal === undefined ? figure : { ...figure, goal };
}

/** The same of the 99th percentile: the smallest sample that so many are not above. */
export function p99Of(
  benchmark: string,
  name: string,
  unit: Unit,
  samples: readonly number[],
  goal?: number,
): Figure {
  const sorted = [...samples].sort((a, b) => a - b);
  const value = sorted[Math.ceil(0.99 * sorted.length) - 1] as number;
  return { ...figureOf(benchmark, `${name}, p99`, unit, samples, goal), value };
}

/** `met by 5.80 ms` and the like; undefined without a goal. */
export function verdictOf({ value, goal, unit }: Figure): string | undefined {
  if (goal === undefined) return undefined;
  if (value <= goal) return `met by ${withUnit(goal - value, unit)}`;
  const percent = Math.round((100 * (value - goal)) / goal);
  return `missed by ${withUnit(value - goal, unit)} (${percent} %)`;
}

export function withUnit(value: number, unit: Unit): string {
  return `${digits(value)} ${unit}`.trimEnd();
}

/** About three significant digits, never an exponent. */
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return value.toFixed(size >= 0.1 ? 2 : 3);
}
