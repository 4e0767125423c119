import { bounded, onAbort, sleep } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';
import type { Watched } from './store.ts';

export interface WatchTask<Value> {
  /** A watch that is set already. Its value is not told. */
  readonly first?: Watched<Value> | undefined;
  readonly watch: (signal: AbortSignal) => Promise<Watched<Value>>;
  /** @returns false when no later value is worth telling */
  readonly onValue: (value: Value) => boolean;
}

/**
 * Watches again after every change, until `signal` aborts. A failed call is tried again after a
 * pause. Never rejects, and does not keep the process alive.
 */
export async function keepWatching<Value>(
  scope: Scope,
  signal: AbortSignal,
  task: WatchTask<Value>,
): Promise<void> {
  const { clock, timing, onTrouble } = scope;
  let watched = task.first;
  while (!signal.aborted) {
    try {
      if (watched === undefined) {
        watched = await bounded(clock, 'watching', timing.operationTimeoutMs, signal, task.watch);
        if (!task.onValue(watched.value)) return;
      }
      await orAborted(watched.changed, signal);
    } catch (error) {
      if (signal.aborted) return;
      onTrouble('watching', error);
      await sleep(clock, timing.pollEveryMs, signal, true).catch(() => {});
    } finally {
      watched?.cancel();
      watched = undefined;
    }
  }
}

/** Resolves with `event`, or when `signal` aborts. It needs no timer, so it can wait for years. */
function orAborted(event: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const forget = onAbort(signal, resolve);
    void event.then(() => {
      forget();
      resolve();
    });
  });
}
