import type { Outcome } from './election.ts';
import type { ElectionPlan, RoundPlan } from './plan.ts';

/** All outcomes of the same election under the same fault. */
export interface Row {
  readonly plan: ElectionPlan;
  readonly fault: RoundPlan['fault'];
  readonly outcomes: readonly Outcome[];
  /** Runs that came to nothing, and why. */
  readonly errors: readonly string[];
}

export function describeElection(plan: ElectionPlan, fault: RoundPlan['fault']): string {
  const struck = fault === 'cut' ? 'cut off' : 'frozen';
  const what = {
    cut: struck,
    'deleted after': `${struck}, then place deleted`,
    'deleted before': `place deleted, then ${struck}`,
    quiet: `${struck} at its first check`,
    'quiet, killed': `${struck} while it waits`,
  }[plan.scenario];
  return plan.who === 'ours' ? what : `${plan.who}: ${what}`;
}

/**
 * The faults of an outcome; undefined when it is only measured. A server that is cut off serves on
 * for `servesMs`. Where the session is over well before, kazoo must have two leaders: else nothing
 * was cut off.
 */
export function faultsOf(
  outcome: Outcome,
  limits: { readonly tickMs: number; readonly servesMs: number; readonly judgeBound: boolean },
): readonly string[] | undefined {
  const { plan, overlapMs, takeoverMs, boundMs, apartMs } = outcome;
  if (plan.who !== 'ours') {
    if (plan.who !== 'kazoo') return undefined;
    if (plan.timeoutMs + 2 * limits.tickMs >= limits.servesMs) return undefined;
    return overlapMs > 0 ? [] : ['kazoo has no two leaders either: nothing was put to the test'];
  }
  const found: string[] = [];
  if (overlapMs > 0) found.push(`two leaders for ${seconds(overlapMs)}`);
  if (!outcome.tokensRise) found.push('the token does not rise');
  if (outcome.notPlayed !== undefined) return found.length > 0 ? found : undefined;
  if (limits.judgeBound && takeoverMs > boundMs) {
    found.push(`B led ${seconds(takeoverMs)} after the fault, and not within ${seconds(boundMs)}`);
  }
  // A candidate that does not lead cannot overlap: nothing was put to the test.
  if (apartMs === undefined && plan.scenario !== 'quiet, killed') found.push('A did not lead');
  return found;
}

/** One line for each row; at the end of a line what it says about the other side's leader. */
export function table(rows: readonly Row[]): string {
  const titles = ['A leads, and its server is', 'session', 'runs', 'two leaders', 'B leads after'];
  const lines = rows.map(({ plan, fault, outcomes, errors }) => {
    const overlaps = outcomes.map(({ overlapMs }) => overlapMs);
    const takeovers = outcomes.filter(isPlayed).map(({ takeoverMs }) => takeoverMs);
    const apart = outcomes.filter(isPlayed).flatMap(({ apartMs }) => apartMs ?? []);
    return [
      describeElection(plan, fault),
      seconds(plan.timeoutMs, 0),
      runsOf({ outcomes, errors }),
      range(overlaps),
      range(takeovers),
      plan.who !== 'ours' ? '-' : seconds(outcomes[0]?.boundMs ?? 0),
      apart.length === 0 || Math.max(...overlaps) > 0 ? '-' : seconds(Math.min(...apart)),
      seconds(Math.max(0, ...outcomes.map(({ longestGapMs }) => longestGapMs)), 3),
    ];
  });
  const all = [[...titles, 'bound', 'least pause', 'longest gap'], ...lines];
  const widths = titles.concat('', '', '').map((_title, column) => {
    return Math.max(...all.map((cells) => (cells[column] ?? '').length));
  });
  return all
    .map((cells) =>
      cells
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join('  '),
    )
    .join('\n');
}

/** Otherwise its scenario did not happen. */
export function isPlayed({ notPlayed }: Outcome): boolean {
  return notPlayed === undefined;
}

function runsOf({ outcomes, errors }: Pick<Row, 'outcomes' | 'errors'>): string {
  const played = outcomes.filter(isPlayed).length;
  const rest = [
    ...(errors.length > 0 ? [`+${errors.length} failed`] : []),
    ...(played < outcomes.length ? [`+${outcomes.length - played} not played`] : []),
  ];
  return rest.length > 0 ? `${played} (${rest.join(', ')})` : String(played);
}

export const legend = `two leaders: how long both would have said yes, at most (0 s: never). B leads after: from the fault on.
bound: session timeout + belief + 2 ticks. least pause: from A's last yes to B's first.
longest gap: between two looks of a leader at itself. not played: A's session had run out before the operator
deleted its place, so only two leaders are looked for.`;

function range(values: readonly number[]): string {
  if (values.length === 0) return '-';
  const least = Math.min(...values);
  const most = Math.max(...values);
  if (most === 0) return '0 s';
  return seconds(least) === seconds(most)
    ? seconds(most)
    : `${(least / 1000).toFixed(1)}–${seconds(most)}`;
}

export function seconds(ms: number, digits = 1): string {
  // An overlap of a moment is not to be read as none.
  const text = (ms / 1000).toFixed(digits);
  return ms > 0 && Number(text) === 0 ? `${ms.toPrecision(2)} ms` : `${text} s`;
}
