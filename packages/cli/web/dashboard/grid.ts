/** The grid of one set of shards: asked for when the command says that it has changed. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ShownGrid, ShownShards, ShownShardTerm } from '../../src/dashboard/shown.ts';
import { clockTime, span } from '../shared/words.ts';
import { nowUnixMs } from './model.ts';

const againMs = 1_000;

/** @returns undefined until it was read */
export function useGrid({ store, name, version }: ShownShards): ShownGrid | undefined {
  const [grid, setGrid] = useState<ShownGrid>();
  const wanted = useRef(version);
  wanted.current = version;
  const isReading = useRef(false);
  useEffect(() => {
    if (version === '' || isReading.current) return;
    isReading.current = true;
    const stop = new AbortController();
    const read = async () => {
      const query = new URLSearchParams({ store: String(store), name });
      // Changes that come meanwhile are read once.
      for (let found = ''; found !== wanted.current && !stop.signal.aborted; ) {
        const told = wanted.current;
        try {
          const response = await fetch(`/shards?${query}`, { signal: stop.signal });
          if (!response.ok) throw new Error(response.statusText);
          const answer = (await response.json()) as ShownGrid;
          setGrid(answer);
          // It may be newer than what we were told.
          found = answer.version === told ? told : wanted.current;
        } catch {
          // The page says by itself that the connection is lost.
          await new Promise((resolve) => setTimeout(resolve, againMs));
        }
      }
      isReading.current = false;
    };
    void read();
  }, [store, name, version]);
  return grid;
}

export function termOf(grid: ShownGrid | undefined, shard: number): ShownShardTerm | undefined {
  return grid?.terms[grid.cells[shard] ?? -1];
}

/** Everything that is known of one shard, in words. */
export function wordsOfShard(grid: ShownGrid | undefined, shard: number): string {
  const name = grid?.names?.[shard];
  const what = name === undefined ? `shard ${shard}` : `shard ${shard} (${name})`;
  const pin = grid?.pins.find((one) => one.shard === shard);
  const pinned = pin === undefined ? '' : `, pinned to ${pin.to}`;
  const term = termOf(grid, shard);
  if (term === undefined) return `${what}: no owner${pinned}`;
  const { id, token, sinceUnixMs } = term;
  const since =
    sinceUnixMs === null
      ? 'since before the dashboard began'
      : `since ${clockTime(sinceUnixMs)} (${span(nowUnixMs.value - sinceUnixMs)})`;
  const moves = grid?.moving.includes(shard) === true ? ', asked to give it up' : '';
  return `${what}: ${id}, token ${token}, ${since}${moves}${pinned}`;
}

/** `0–3, 7, 12–15` */
export function rangesOf(numbers: readonly number[], most: number): string {
  const ranges: [number, number][] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  const shown = ranges
    .slice(0, most)
    .map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`));
  const rest = ranges.slice(most).reduce((sum, [first, last]) => sum + last - first + 1, 0);
  return `${shown.join(', ')}${rest === 0 ? '' : ` and ${rest} more`}`;
}
