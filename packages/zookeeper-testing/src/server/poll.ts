import { setTimeout as sleep } from 'node:timers/promises';
import { TestServerError } from './errors.ts';
import type { WaitOptions } from './options.ts';

const intervalMs = 20;

/** Asks until the answer is not undefined. Rejects with an error of `ask`, or at the time limit. */
export async function poll<Answer>(
  what: string,
  options: WaitOptions,
  ask: () => Promise<Answer | undefined>,
): Promise<Answer> {
  const timeoutMs = options.timeoutMs ?? 30_000;
  const startedAtMs = performance.now();
  for (;;) {
    options.signal?.throwIfAborted();
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() - startedAtMs > timeoutMs) {
      throw new TestServerError('TIMED_OUT', `not within ${timeoutMs} ms: ${what}`);
    }
    await sleep(intervalMs);
  }
}
