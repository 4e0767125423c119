/** The goals of our figures, and whether they are met. */
import { digits, median } from '../figure.ts';
import type { MetricId } from './metrics.ts';
import { metrics } from './metrics.ts';
import type { Column, Results } from './results.ts';

export interface Goal {
  readonly metric: MetricId;
  readonly bound: 'at most' | 'at least';
  /** Times `beside`; without it in the metric's unit. */
  readonly limit: number;
  readonly beside?: { readonly column: Column; readonly metric?: MetricId };
}

/** The noise of one run that is no drop. */
const noDrop = 0.97;

const raw = { column: 'raw' } as const;
const rawDecode = { column: 'raw+decode' } as const;
const nzc = { column: 'NZC' } as const;

export const goals: readonly Goal[] = [
  { metric: 'get1P50', bound: 'at most', limit: 1.1, beside: raw },
  { metric: 'get100Cpu', bound: 'at most', limit: 1.4, beside: raw },
  { metric: 'get100Rate', bound: 'at least', limit: 0.95, beside: raw },
  { metric: 'get1000Cpu', bound: 'at most', limit: 1.4, beside: raw },
  { metric: 'get1000Rate', bound: 'at least', limit: 0.95, beside: raw },
  {
    metric: 'get1000Rate',
    bound: 'at least',
    limit: noDrop,
    beside: { column: 'ours', metric: 'get100Rate' },
  },
  { metric: 'canned100Cpu', bound: 'at most', limit: 0.15, beside: nzc },
  { metric: 'canned100Rate', bound: 'at least', limit: 6, beside: nzc },
  { metric: 'canned100Rate', bound: 'at least', limit: 0.4, beside: rawDecode },
  { metric: 'canned1000Cpu', bound: 'at most', limit: 0.15, beside: nzc },
  { metric: 'canned1000Rate', bound: 'at least', limit: 15, beside: nzc },
  { metric: 'canned1000Rate', bound: 'at least', limit: 0.4, beside: rawDecode },
  { metric: 'createCpu', bound: 'at most', limit: 1.4, beside: raw },
  { metric: 'watchP50', bound: 'at most', limit: 1.1, beside: raw },
  { metric: 'connectP50', bound: 'at most', limit: 1.1, beside: raw },
  { metric: 'handshakeP50', bound: 'at most', limit: 1.1, beside: raw },
  { metric: 'outageP50', bound: 'at most', limit: 200 },
  { metric: 'refusedAttempts', bound: 'at most', limit: 10 },
  { metric: 'watchBytes', bound: 'at most', limit: 470 },
];

export interface Verdict {
  readonly goal: Goal;
  /** In the same terms as the goal's limit. */
  readonly value: number;
  readonly met: boolean;
}

/**
 * A ratio is the median of the ratios of each round, so that a slow round is in both of its sides.
 * @returns undefined where one side was not measured
 */
export function judge(goal: Goal, results: Results): Verdict | undefined {
  const { metric, beside, bound, limit } = goal;
  const own = results.samples(metric, 'ours');
  let values = [...own.values()];
  if (beside !== undefined) {
    const other = results.samples(beside.metric ?? metric, beside.column);
    values = [...own].flatMap(([moment, value]) => {
      const divisor = other.get(moment);
      return divisor === undefined ? [] : [value / divisor];
    });
  }
  if (values.length === 0) return undefined;
  const value = median(values);
  return { goal, value, met: bound === 'at most' ? value <= limit : value >= limit };
}

/** `≤ 1.40 × raw`. */
export function goalText({ metric, bound, limit, beside }: Goal): string {
  const sign = bound === 'at most' ? '≤' : '≥';
  if (beside === undefined) {
    const { unit } = metrics[metric];
    return `${sign} ${digits(limit)}${unit === '' ? '' : ` ${unit}`}`;
  }
  const other = beside.metric === undefined ? beside.column : metrics[beside.metric].name;
  return `${sign} ${digits(limit)} × ${other}`;
}

/** `0.93, met`. @param verdict of a goal; null where it was not measured */
export function verdictText({
  beside,
  value,
  met,
}: Pick<Goal, 'beside'> & { readonly value: number | null; readonly met: boolean | null }): string {
  if (value === null) return 'not measured';
  const factor = beside === undefined ? digits(value) : `${digits(value)} ×`;
  return `${factor}, ${met ? 'met' : 'MISSED'}`;
}
