import type { CallOptions } from './arguments.ts';
import type { Caller } from './caller.ts';
import { RequestTimeoutError } from './errors.ts';

/**
 * What is left of the bound of a call that takes several requests.
 * @param writes whether something may have been applied when it has passed
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
