import { inSeconds } from '@incumbent/servers';

export interface Played<Fault extends string> {
  readonly fault: Fault;
  /** undefined: the leader went on, or what is waited for did not come. */
  readonly takeoverMs: number | undefined;
}

/**
 * Rounds and takeover times by fault.
 * @param untimed the title of the rounds without a time
 */
export function table<Fault extends string>(
  faults: readonly Fault[],
  played: readonly Played<Fault>[],
  untimed = 'went on',
): string {
  const rows = faults.map((fault) => {
    const rounds = played.filter((each) => each.fault === fault);
    const times = rounds.flatMap(({ takeoverMs }) => takeoverMs ?? []).sort((a, b) => a - b);
    const cells = [rounds.length, rounds.length - times.length].map((count) => String(count));
    return [fault, ...cells, ...[0.5, 0.95, 1].map((share) => quantile(times, share))];
  });
  const titles = ['fault', 'rounds', untimed, 'p50', 'p95', 'max'];
  const width = Math.max(28, ...faults.map((fault) => fault.length));
  return [titles, ...rows]
    .map(([name = '', ...cells]) => name.padEnd(width) + cells.map((c) => c.padStart(9)).join(''))
    .join('\n');
}

/** The smallest of `sorted` that so many are not above. */
function quantile(sorted: readonly number[], share: number): string {
  const ms = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  return ms === undefined ? '-' : inSeconds(ms);
}
