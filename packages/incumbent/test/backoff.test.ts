import { describe, expect, test } from 'vitest';
import { resolveTiming } from '../src/base/timing.ts';
import { backoffMs } from '../src/core/backoff.ts';

const timing = resolveTiming({ retryBackoff: 100, pollEvery: '20s' });

describe('a candidate pauses after failures in a row', () => {
  test.each([
    [1, 100],
    [2, 200],
    [3, 400],
    [6, 3_200],
    [7, 6_400],
    // No longer than that, however many there are.
    [8, 6_400],
    [1_000_000, 6_400],
  ])('after %d: %d ms at the most, and half of that at least', (failures, mostMs) => {
    const pauseMs = (random: number) => backoffMs({ timing, random: () => random }, failures);
    expect(pauseMs(0)).toBe(mostMs / 2);
    expect(pauseMs(0.5)).toBe(0.75 * mostMs);
    expect(pauseMs(0.999_999)).toBeCloseTo(mostMs, 1);
  });

  test('not longer than it pauses between two looks', () => {
    const often = resolveTiming({ retryBackoff: 100, pollEvery: 150 });
    expect(backoffMs({ timing: often, random: () => 0 }, 5)).toBe(75);
  });
});
