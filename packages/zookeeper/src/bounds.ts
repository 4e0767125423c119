import type { CallOptions } from './arguments.ts';
import type { Caller } from './caller.ts';
import { RequestTimeoutError } from './errors.ts';

/**
 * Shares one time limit among the requests of a call: each gets what is left of it.
 * @param writes whether a change may have been applied when the time is over
 */
export function boundsOf(
  caller: Caller,
  { signal, timeoutMs }: CallOptions,
  writes = true,
): () => CallOptions | undefined {
  if (timeoutMs === undefined) return () => (signal === undefined ? undefined : { signal });
  const endMs = caller.clock.monotonicMs() + timeoutMs;
  return () => {
    const leftMs = endMs - caller.clock.monotonicMs();
    if (leftMs <= 0) throw new RequestTimeoutError(timeoutMs, writes, {});
    return { signal, timeoutMs: leftMs };
  };
}
