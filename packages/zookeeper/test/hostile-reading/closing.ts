import { afterEach } from 'vitest';
import type { TestClock } from './clock.ts';

/**
 * @returns a function that closes its argument after the test, the last first, and returns it. It
 *   moves the clock of a client, so that the time limits of closing pass
 */
export function closeAfterEach(): <T extends AsyncDisposable>(open: T, clock?: TestClock) => T {
  const ends: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });
  return (open, clock) => {
    ends.push(async () => {
      const closed = Promise.resolve(open[Symbol.asyncDispose]());
      await (clock === undefined ? closed : clock.runUntilSettled(closed));
    });
    return open;
  };
}
