import { afterEach } from 'vitest';
import type { TestClock } from './clock.ts';

/**
 * @returns closes what it is given after the test, the last first, and gives it back; with the clock
 *   that it goes by, so that the bounds of closing come to pass
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
