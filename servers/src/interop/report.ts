import { inSeconds } from '../in-seconds.ts';
import { strikes } from './plan.ts';
import type { Played } from './play.ts';
import { sideOf } from './play.ts';
import type { Overlap } from './verdict.ts';

/** Takeover times by what was done and who followed whom. */
export function takeoverTable(played: readonly Played[]): string {
  const rows = strikes.flatMap((strike) =>
    ['ours > ours', 'ours > theirs', 'theirs > ours', 'theirs > theirs'].flatMap((pair) => {
      const times = played
        .filter((each) => each.strike === strike && pairOf(each) === pair)
        .map(({ takeoverMs }) => takeoverMs);
      return times.length === 0 ? [] : [[strike, pair, String(times.length), ...spread(times)]];
    }),
  );
  return [['strike', 'who > next', 'times', 'median', 'longest'], ...rows]
    .map(([strike = '', pair = '', ...cells]) =>
      [strike.padEnd(9), pair.padEnd(17), ...cells.map((cell) => cell.padStart(9))].join(''),
    )
    .join('\n');
}

/** How long leaders of the other library went on while the next one led. */
export function overlapReport(played: readonly Played[], overlaps: readonly Overlap[]): string {
  return strikes
    .flatMap((strike) => {
      const times = played.filter(
        (each) => each.strike === strike && sideOf(each.struck.candidate) === 'theirs',
      ).length;
      if (times === 0) return [];
      const found = overlaps.filter((each) => each.strike === strike).map(({ ms }) => ms);
      const [, longest] = spread(found);
      const what =
        found.length === 0 ? 'no overlap' : `${found.length} overlaps, at most ${longest}`;
      return `their leader after ${strike}, ${times} times: ${what}`;
    })
    .join('\n');
}

function pairOf({ struck, next }: Played): string {
  return `${sideOf(struck.candidate)} > ${sideOf(next.candidate)}`;
}

function spread(times: readonly number[]): [median: string, longest: string] {
  const sorted = [...times].sort((a, b) => a - b);
  const ms = (value: number | undefined) =>
    value === undefined ? '-' : value < 100 ? `${value.toFixed(1)} ms` : inSeconds(value);
  return [ms(sorted[Math.floor((sorted.length - 1) / 2)]), ms(sorted.at(-1))];
}
