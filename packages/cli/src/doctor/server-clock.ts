/** How far a server's clock is from ours. */
import { formatDuration } from 'incumbent';
import type { Finding } from './finding.ts';

/** Beyond it, times that people write and read are of little use. */
const farMs = 5_000;
const samples = 5;

/**
 * @param ask the server's time, in ms since 1970
 * @param use what depends on it, such as `no election depends on it`
 * @param coarseMs how much of a time the server keeps to itself: 1,000 where it tells whole seconds
 */
export async function serverClockFinding(
  ask: () => Promise<number>,
  use: string,
  coarseMs = 0,
): Promise<Finding> {
  let best: { readonly offMs: number; readonly doubtMs: number } | undefined;
  for (let i = 0; i < samples; i += 1) {
    const before = Date.now();
    const theirs = (await ask()) + coarseMs / 2;
    const after = Date.now();
    const doubtMs = (after - before + coarseMs) / 2 + 1;
    if (best === undefined || doubtMs < best.doubtMs) {
      best = { offMs: theirs - (before + after) / 2, doubtMs };
    }
  }
  const { offMs = 0, doubtMs = 0 } = best ?? {};
  const isFar = Math.abs(offMs) - doubtMs > farMs;
  const show = (ms: number) => formatDuration(Math.round(ms));
  return {
    check: 'clock',
    level: isFar ? 'warn' : 'note',
    message:
      `the clock of the server is ${show(Math.abs(offMs))} ${offMs < 0 ? 'behind' : 'ahead of'} ours ` +
      `(± ${show(doubtMs)})${isFar ? ': set one of them right' : ''}; ${use}`,
    data: { aheadMs: Math.round(offMs), doubtMs },
  };
}
