import { formatDuration } from 'incumbent';

/**
 * Runs `job` with a signal that aborts after `ms`, or with `signal`. Settles when the job has
 * settled, so nothing of it goes on afterwards.
 * @throws Error that says what took too long; `signal.reason`
 */
export async function within<T>(
  ms: number,
  what: string,
  signal: AbortSignal,
  job: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const stop = new AbortController();
  const forward = () => stop.abort(signal.reason);
  signal.addEventListener('abort', forward, { once: true });
  const timer = setTimeout(
    () => stop.abort(new Error(`${what} took longer than ${formatDuration(ms)}`)),
    ms,
  );
  try {
    const value = await job(stop.signal);
    stop.signal.throwIfAborted();
    return value;
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', forward);
  }
}
