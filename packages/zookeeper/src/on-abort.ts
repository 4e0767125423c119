/**
 * The callbacks that wait for a signal. They share one listener, because Node warns of a leak above
 * ten.
 */
interface Waiters {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const waitersOf = new WeakMap<AbortSignal, Waiters>();

/**
 * Calls `callback` once when `signal` aborts, in the order of the calls; never at once.
 * @returns stops it
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  let waiters = waitersOf.get(signal);
  if (waiters === undefined) {
    const callbacks = new Set<() => void>();
    const listener = () => {
      waitersOf.delete(signal);
      // A callback may withdraw another one.
      for (const waiting of [...callbacks]) if (callbacks.has(waiting)) waiting();
    };
    waiters = { callbacks, listener };
    waitersOf.set(signal, waiters);
    signal.addEventListener('abort', listener, { once: true });
  }
  const { callbacks, listener } = waiters;
  // The same function may be given twice.
  const own = () => callback();
  callbacks.add(own);
  return () => {
    if (!callbacks.delete(own) || callbacks.size > 0) return;
    signal.removeEventListener('abort', listener);
    if (waitersOf.get(signal)?.callbacks === callbacks) waitersOf.delete(signal);
  };
}
