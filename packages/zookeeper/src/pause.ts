import type { Clock } from './clock.ts';
import { onAbort } from './on-abort.ts';

/** Resolves after `delayMs`, or at once when `stop` aborts. */
export function pause(clock: Clock, delayMs: number, stop: AbortSignal): Promise<void> {
  if (stop.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      timer.cancel();
      stopListening();
      resolve();
    };
    const timer = clock.setTimer(done, delayMs);
    const stopListening = onAbort(stop, done);
  });
}
