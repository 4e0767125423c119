import { deriveTiming } from 'incumbent';
import { expect, test } from 'vitest';
import { takeoverFinding } from '../src/doctor/bucket.ts';

const limits = { defaultLeaseMs: 45_000, pollsPerLease: 2 };

// Measured at a lease of 10 s: 10.8 to 12.3 s.
test.each([
  [{ lease: '10s' }, {}, 15_000, 'the lease of 10s, up to 5s until'],
  [{}, {}, 51_000, 'the lease of 45s, up to 6s until'],
  [{}, { clockStep: '5s' }, 54_000, 'at most 54s from that renewal on'],
  [{}, { age: 'off' }, 67_500, 'who comes later waits 45s from when it came'],
] as const)(
  'a take-over with %j and %j counts what a look leaves open',
  (timing, age, ms, says) => {
    const finding = takeoverFinding(deriveTiming(timing, limits), age, 4_000);
    expect(finding.data).toMatchObject({ withinMs: ms });
    expect(finding.message).toContain(says);
  },
);
