import type { Scope } from './contest.ts';

/** How often the pause doubles. After that it is sixty-four times as long. */
const mostDoublings = 6;

/**
 * How long a candidate pauses after so many failures in a row, in ms. The pause doubles with each
 * failure, up to `pollEvery`. A random part is left out, so that candidates that failed together do
 * not come back together.
 */
export function backoffMs(scope: Pick<Scope, 'timing' | 'random'>, failures: number): number {
  const { timing, random } = scope;
  const ms = timing.retryBackoffMs * 2 ** Math.min(failures - 1, mostDoublings);
  return Math.min(ms, timing.pollEveryMs) * (0.5 + random() / 2);
}
