import { expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
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
