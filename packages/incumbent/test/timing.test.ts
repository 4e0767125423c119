import { expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import type { Timing, TimingLimits, TimingOptions } from '../src/base/timing.ts';
import {
  createElection,
  deriveTiming,
  InvalidOptionError,
  InvalidTimingError,
  parseDuration,
  resolveTiming,
  timingViolations,
} from '../src/index.ts';

const violationsOf = (options: Parameters<typeof resolveTiming>[0]): string => {
  try {
    resolveTiming(options);
  } catch (error) {
    if (error instanceof InvalidTimingError) return error.violations.join('\n');
    throw error;
  }
  return '';
};

test('the defaults hold for any lease from 1 s to 1 h', () => {
  for (let leaseMs = 1_000; leaseMs <= 3_600_000; leaseMs = Math.ceil(leaseMs * 1.01)) {
    expect(violationsOf({ lease: leaseMs })).toBe('');
  }
  expect(violationsOf({ lease: '1h' })).toBe('');
  expect(resolveTiming()).toMatchObject({
    leaseMs: 15_000,
    beliefMs: 12_000,
    stopMarginMs: 2_000,
    renewEveryMs: 3_000,
    operationTimeoutMs: 2_500,
  });
});

test('15/11/9 is refused with the numbers (KB1)', () => {
  const violations = violationsOf({ lease: '15s', belief: '11s', renewEvery: '9s' });
  expect(violations).toContain('P2 0 < stopMargin < belief − renewEvery: 2s is not between 0 and');
  expect(violations).toContain('P3');
  expect(violations).toContain('9s + 2·2.5s + 2.25s = 16.25s is more than 11s − 2s = 9s');
});

test('a belief that the lease cannot cover is refused with the longest that it can (P1)', () => {
  expect(violationsOf({ lease: '15s', belief: '14s' })).toMatch(
    /P1 .* 14s of belief at a clock drift of 0.05 needs a lease of 15.47s, it is 15s: .* 13.57s/,
  );
  // The edge itself is allowed.
  const longestMs = (10_000 * 0.95) / 1.05;
  expect(violationsOf({ lease: 10_000, belief: longestMs })).toBe('');
  expect(violationsOf({ lease: 10_000, belief: longestMs + 0.01 })).toContain('P1');
});

test('every broken rule is named at once', () => {
  const violations = violationsOf({ lease: '15s', belief: '16s', stopMargin: '17s' });
  expect(violations.split('\n')).toHaveLength(3);
});

test('a lease outside 1 s to 1 h is refused', () => {
  expect(violationsOf({ lease: '999ms' })).toBe('lease: 999ms is outside 1s to 1h');
  expect(violationsOf({ lease: '61m' })).toBe('lease: 1h 1m is outside 1s to 1h');
});

test.each([
  [{ lease: 15 }, 'lease: 15 is milliseconds, and the shortest lease is 1s: write "15s"'],
  [{ lease: 0.5 }, 'lease: 0.5 is milliseconds, and the shortest lease is 1s'],
  [
    { renewEvery: 3 },
    'renewEvery: 3 is milliseconds, and the shortest renewEvery is 10ms: write "3s"',
  ],
])(
  'a number that was meant in seconds is told alone, with what to write: %j',
  (options, sentence) => {
    expect(violationsOf(options)).toBe(sentence);
  },
);

test.each([
  ['-5s', 'must not be negative'],
  [-1, 'must not be negative'],
  ['15', 'has no unit'],
  ['15 parsecs', 'is not a duration'],
  ['', 'is not a duration'],
  [Number.NaN, 'must be finite'],
  [Number.POSITIVE_INFINITY, 'must be finite'],
  [2 ** 31, 'timers keep at most 2^31 - 1 ms'],
  ['25d', 'is not a duration'],
  ['600h', 'timers keep at most'],
  [null, 'must be a duration'],
  [{}, 'must be a duration'],
])('the duration %j is refused: %s', (value, message) => {
  expect(() => parseDuration('lease', value)).toThrow(InvalidOptionError);
  expect(() => parseDuration('lease', value)).toThrow(message);
  expect(() => parseDuration('lease', value)).toThrow(/^lease /);
});

test('durations are milliseconds or a number with a unit', () => {
  expect(['250ms', '15s', '1.5m', '1h', 42, 0].map((value) => parseDuration('x', value))).toEqual([
    250, 15_000, 90_000, 3_600_000, 42, 0,
  ]);
});

test.each([-0.1, 0.21, Number.NaN, '', '0.1', [], false])(
  'a clock drift of %j is refused',
  (clockDrift) => {
    const resolve = () => resolveTiming({ clockDrift: clockDrift as number });
    expect(resolve).toThrow(InvalidOptionError);
    expect(resolve).toThrow('clockDrift must be a fraction from 0 to 0.2');
  },
);

test('bad timing is refused before the backend is touched', () => {
  const backend = { ...memory(), open: () => expect.fail('touched') };
  expect(() => createElection({ name: 'jobs', backend, lease: '15s', belief: '15s' })).toThrow(
    'P1',
  );
});

test('deriveTiming gives the numbers of a set that cannot be kept, and refuses a value that is no duration', () => {
  const timing = deriveTiming({ lease: '15s', belief: '14s' });
  expect(timing).toMatchObject({ leaseMs: 15_000, beliefMs: 14_000, renewEveryMs: 3_000 });
  expect(timingViolations(timing)).toHaveLength(1);
  expect(() => deriveTiming({ lease: '15' })).toThrow('has no unit');
});

test('a store of which reading costs money is looked at as often as it says, unless pollEvery says', () => {
  const limits = { defaultLeaseMs: 45_000, pollsPerLease: 2 };
  expect(resolveTiming({}, limits).pollEveryMs).toBe(22_500);
  expect(resolveTiming({ pollEvery: '3s' }, limits).pollEveryMs).toBe(3_000);
  expect(resolveTiming({ lease: '1h' }, limits).pollEveryMs).toBe(30_000);
});

test('confirming more often than the store bears is refused with both durations', () => {
  const limits = { minLeaseMs: 5_000, minRenewEveryMs: 1_000 };
  expect(resolveTiming({ lease: '5s' }, limits).renewEveryMs).toBe(1_000);
  expect(() => resolveTiming({ lease: '5s', renewEvery: '900ms' }, limits)).toThrow(
    'renewEvery: 900ms is shorter than 1s',
  );
});

test.each([0, -200])(
  'a session of which nothing is left to believe in is refused: a belief of %i ms at the longest',
  (ms) => {
    const limits = { sessionTimeoutMs: 4_000, maxBelief: { ms, because: 'the tick is too long' } };
    expect(deriveTiming({}, limits).beliefMs).toBe(0);
    expect(() => resolveTiming({}, limits)).toThrow('belief: it must be longer than 0');
  },
);

test.each<[string, TimingOptions, TimingLimits, Partial<Timing>]>([
  [
    'of the lease',
    {},
    {},
    {
      ...{ leaseMs: 15_000, beliefMs: 12_000, stopMarginMs: 2_000, renewEveryMs: 3_000 },
      ...{ operationTimeoutMs: 2_500, retryBackoffMs: 750, pollEveryMs: 3_000 },
      ...{ stopTimeoutMs: 30_000, clockDrift: 0.05 },
    },
  ],
  [
    'of a long lease, which are bounded',
    { lease: '1h' },
    {},
    {
      ...{ beliefMs: 2_880_000, stopMarginMs: 30_000, renewEveryMs: 30_000 },
      ...{ operationTimeoutMs: 10_000, retryBackoffMs: 7_500, pollEveryMs: 5_000 },
    },
  ],
  [
    'of a session',
    {},
    { sessionTimeoutMs: 20_000 },
    {
      ...{ leaseMs: 20_000, beliefMs: 8_000, stopMarginMs: 1_000, renewEveryMs: 2_000 },
      ...{ operationTimeoutMs: 2_000, retryBackoffMs: 500, pollEveryMs: 2_000 },
    },
  ],
  [
    'of a session of which less is safe to believe in',
    { lease: '20s' },
    { sessionTimeoutMs: 20_000, maxBelief: { ms: 4_000, because: 'of the tick' } },
    { beliefMs: 4_000, stopMarginMs: 500, renewEveryMs: 1_000, operationTimeoutMs: 1_000 },
  ],
  [
    'of a store with a lease of its own',
    {},
    { defaultLeaseMs: 45_000 },
    { leaseMs: 45_000, beliefMs: 36_000, renewEveryMs: 9_000, pollEveryMs: 5_000 },
  ],
])('all numbers follow from those %s', (_, options, limits, expected) => {
  expect(resolveTiming(options, limits)).toMatchObject(expected);
});

test('a limit is allowed, and one step beyond it is not', () => {
  for (const edge of [
    { lease: 1_000 },
    { lease: '1h' },
    { clockDrift: 0 },
    { clockDrift: 0.2, belief: '10s', renewEvery: '2s', operationTimeout: '2s' },
    { lease: '1s', pollEvery: 10 },
    { lease: '15s', operationTimeout: 3_125 },
    { lease: '15s', stopMargin: 1, operationTimeout: 100 },
  ] as const) {
    expect(violationsOf(edge)).toBe('');
  }
  // Nobody means 0 seconds.
  expect(violationsOf({ lease: 0 })).toContain('lease: 0ms is outside 1s to 1h');
  expect(violationsOf({ lease: '3601s' })).toContain('lease: 1h 1s is outside 1s to 1h');
  expect(violationsOf({ pollEvery: '9ms' })).toContain('pollEvery: 9ms is shorter than 10ms');
  expect(violationsOf({ operationTimeout: 3_126 })).toMatch(/^P3 .* = 10s is more than .* = 10s/);
  expect(violationsOf({ belief: 0 })).toContain('belief: it must be longer than 0');
  for (const stopMargin of [0, '9s']) expect(violationsOf({ stopMargin })).toContain('P2');
  expect(violationsOf({ stopMargin: 8_999 })).not.toContain('P2');
});

test('a belief that a store cannot keep is refused with the reason, and the longest is not', () => {
  const limits = { sessionTimeoutMs: 20_000, maxBelief: { ms: 9_000, because: 'of the tick' } };
  expect(resolveTiming({ belief: 9_000 }, limits).beliefMs).toBe(9_000);
  expect(() => resolveTiming({ belief: 9_001 }, limits)).toThrow(
    'belief: 9s is longer than 9s: of the tick',
  );
});

test('the lease of a session is the timeout of that session, and no other', () => {
  const limits = { sessionTimeoutMs: 20_000 };
  expect(() => resolveTiming({ lease: '15s' }, limits)).toThrow(
    "lease: on this store it is the timeout of the client's session, which is 20s and not 15s",
  );
});

test('elections with the same timing share it, and nobody can change it', () => {
  const timing = resolveTiming({ lease: '7s' });
  expect(resolveTiming({ lease: 7_000 })).toBe(timing);
  expect(Object.isFrozen(timing)).toBe(true);
  const other = resolveTiming({ lease: '7s', stopTimeout: '1s' });
  expect(other).not.toBe(timing);
  expect(other.stopTimeoutMs).toBe(1_000);
});

test('the longest duration is that which a timer keeps', () => {
  expect(parseDuration('x', 2 ** 31 - 1)).toBe(2_147_483_647);
  expect(() => parseDuration('x', 2 ** 31)).toThrow('timers keep at most 2^31 - 1 ms (24.8 days)');
});
