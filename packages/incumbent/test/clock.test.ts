// The clocks of the machine, as the library sees them.
import { expect, test } from 'vitest';
import { maxTimerMs, systemClock } from '../src/base/clock.ts';

// Node would call back after 1 ms.
test.each([2 ** 31, Number.POSITIVE_INFINITY, Number.NaN, -1])(
  'a timer of %d ms is refused',
  (ms) => {
    expect(() => systemClock.setTimer(() => {}, ms)).toThrow('a timer takes 0 to 2147483647 ms');
  },
);

test.each([0, 0.5, maxTimerMs])('a timer of %d ms is taken, and can be cancelled', (ms) => {
  systemClock.setTimer(() => {}, ms).cancel();
});
