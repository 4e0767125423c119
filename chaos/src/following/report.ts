import { table as takeoverTable } from '../harness/report.ts';
import { faults } from './plan.ts';
import type { Outcome } from './run.ts';

/** The calls and results of one way of calling. */
export interface WayRow {
  readonly way: string;
  readonly calls: number;
  readonly failed: number;
  /** From the beginning of a term to its first answer; of all changes and clients. */
  readonly reactionsMs: readonly number[];
  /** The longest after the beginning of a term that a call failed. */
  readonly lastFailedMs: number | undefined;
}

export function wayRows({ served, failures, terms, windows }: Outcome): readonly WayRow[] {
  const ways = [...new Set([...served, ...failures].map(({ way }) => way))].sort();
  return ways.map((way) => {
    const own = served.filter((each) => each.way === way);
    const failed = failures.filter((each) => each.way === way);
    // Before the next one is struck.
    const afterBegin = terms.flatMap(({ beginsMs }, index) => {
      const untilMs = windows[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
      return failed
        .filter(({ endMs }) => endMs >= beginsMs && endMs < untilMs)
        .map(({ endMs }) => endMs - beginsMs);
    });
    return {
      way,
      calls: own.reduce((sum, { calls }) => sum + calls, 0),
      failed: failed.length,
      // In the first term clients came later.
      reactionsMs: own.flatMap(({ token, firstMs }) => {
        const term = terms.slice(1).find((each) => String(each.token) === token);
        return term === undefined ? [] : [firstMs - term.beginsMs];
      }),
      lastFailedMs: afterBegin.length === 0 ? undefined : Math.max(...afterBegin),
    };
  });
}

export function tables(outcome: Outcome): string {
  const played = outcome.played.map(({ fault, atMs, beginsMs }) => {
    return { fault, takeoverMs: beginsMs - atMs };
  });
  const titles = ['way', 'calls', 'failed', 'p50', 'p99', 'max', 'last failed'];
  const rows = wayRows(outcome).map(({ way, calls, failed, reactionsMs, lastFailedMs }) => [
    way,
    String(calls),
    String(failed),
    ...[0.5, 0.99, 1].map((share) => ms(quantile(reactionsMs, share))),
    ms(lastFailedMs),
  ]);
  const ways = [titles, ...rows]
    .map(([name = '', ...cells]) => name.padEnd(28) + cells.map((c) => c.padStart(12)).join(''))
    .join('\n');
  return (
    `${takeoverTable(faults, played)}\n\n${ways}\n\n` +
    'p50, p99, max: from the beginning of a term to the first answer; last failed: the longest after it'
  );
}

export function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

function ms(value: number | undefined): string {
  return value === undefined ? '-' : `${value.toFixed(1)} ms`;
}
