import { ElectionError } from 'incumbent';
import { monotonicMs } from '../guard/protocol.ts';

/** How long the store may let us wait before we give up on it. */
export const patienceMs = 10_000;
/** The pause before a store that failed is asked again. */
const askAgainMs = 100;

/**
 * Finds out whether the store can be reached before anything waits for it. A store that is only
 * slow is asked again: many start together with their machine, and that takes time. So is one of
 * several servers: it has been reached already, and the client finds the next if this one fails.
 * @param ask one read of the store
 */
export async function reachStore(
  ask: (signal: AbortSignal) => Promise<unknown>,
  hasServers: boolean,
  signal: AbortSignal,
): Promise<void> {
  for (const untilMs = monotonicMs() + patienceMs; ; ) {
    try {
      await ask(signal);
      return;
    } catch (error) {
      const mayPass =
        error instanceof ElectionError &&
        (error.code === 'OPERATION_TIMEOUT' || (hasServers && error.retryable));
      if (!mayPass || monotonicMs() > untilMs) throw error;
      await sleep(askAgainMs, signal);
    }
  }
}

/** @throws `signal.reason` */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}
