import { sleep } from '../base/wait.ts';
import type { Scope } from '../core/contest.ts';

/** The pause after a watch that failed. */
const pauseMs = 1_000;

/**
 * Watches again and again, for a store whose watches tell of one change each.
 * @param next watches once, and says when there is news. Resolves when it is to be called again
 * @returns a function that ends it
 */
export function watchAgain(
  { clock, onTrouble }: Scope,
  what: string,
  next: (signal: AbortSignal, onHint: () => void) => Promise<void>,
  onHint: () => void,
): () => void {
  const end = new AbortController();
  const { signal } = end;
  const hint = () => {
    if (!signal.aborted) onHint();
  };
  void (async () => {
    while (!signal.aborted) {
      try {
        await next(signal, hint);
      } catch (error) {
        if (signal.aborted) return;
        onTrouble(what, error);
        await sleep(clock, pauseMs, signal, true).catch(() => {});
      }
    }
  })();
  return () => end.abort();
}
