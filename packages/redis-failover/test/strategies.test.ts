import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Report } from '../src/layout.ts';
import type { NodeStrategy } from '../src/manager/options.ts';
import type { Candidate } from '../src/manager/strategies.ts';
import { hasEnoughReports, judge, rankCandidates } from '../src/manager/strategies.ts';

const node = '10.0.0.7:6379';
const other = '10.0.0.8:6379';

/** Reports of so many managers that see the node up, down, and not at all. */
function reportsOf(up: number, down: number, silent = 0): Map<string, Report> {
  const reports: Report[] = [
    ...Array.from({ length: up }, () => ({ available: { [node]: 0.001 }, unavailable: [] })),
    ...Array.from({ length: down }, () => ({ available: {}, unavailable: [node] })),
    ...Array.from({ length: silent }, () => ({ available: { [other]: 0.001 }, unavailable: [] })),
  ];
  return new Map(reports.map((report, index) => [`m-${index + 1}`, report]));
}

describe('the verdict on a node', () => {
  const up = 'available';
  const down = 'unavailable';
  test.each<[number, number, Record<NodeStrategy, string>]>([
    [3, 0, { majority: up, consensus: up, single: up }],
    [2, 1, { majority: up, consensus: up, single: down }],
    [1, 2, { majority: down, consensus: up, single: down }],
    [0, 3, { majority: down, consensus: down, single: down }],
    [1, 1, { majority: up, consensus: up, single: down }],
    [0, 1, { majority: down, consensus: down, single: down }],
    [0, 0, { majority: up, consensus: up, single: up }],
  ])('of %i managers that see it and %i that do not', (seeing, missing, expected) => {
    for (const silent of [0, 5]) {
      const reports = reportsOf(seeing, missing, silent);
      for (const strategy of ['majority', 'consensus', 'single'] as const) {
        expect([strategy, judge(strategy, node, reports).state]).toEqual([
          strategy,
          expected[strategy],
        ]);
      }
    }
  });

  test('names who sees it and who does not; a manager that does not report on it is in neither', () => {
    expect(judge('majority', node, reportsOf(1, 2, 1))).toEqual({
      state: 'unavailable',
      availableTo: ['m-1'],
      unavailableTo: ['m-2', 'm-3'],
    });
  });

  test('whoever calls it down alone is outvoted, except where one is enough (any numbers)', () => {
    const count = fc.integer({ min: 0, max: 6 });
    fc.assert(
      fc.property(count, count, (seeing, missing) => {
        const reports = reportsOf(seeing, missing);
        const isDown = (strategy: NodeStrategy) =>
          judge(strategy, node, reports).state === 'unavailable';
        expect(isDown('majority')).toBe(missing > seeing);
        expect(isDown('consensus')).toBe(missing > 0 && seeing === 0);
        expect(isDown('single')).toBe(missing > 0);
        // Each is stricter than the next.
        if (isDown('consensus')) expect(isDown('majority')).toBe(true);
        if (isDown('majority')) expect(isDown('single')).toBe(true);
      }),
    );
  });
});

describe('enough reports', () => {
  test('those on this node count, up and down alike', () => {
    const reports = reportsOf(1, 1, 4);
    expect(hasEnoughReports(2, node, reports)).toBe(true);
    expect(hasEnoughReports(3, node, reports)).toBe(false);
  });

  test('a manager that says both is one manager', () => {
    const both = { available: { [node]: 0.001 }, unavailable: [node] };
    expect(hasEnoughReports(2, node, new Map([['m-1', both]]))).toBe(false);
  });

  test('none are not enough', () => {
    expect(hasEnoughReports(1, node, new Map())).toBe(false);
  });
});

describe('who is promoted', () => {
  const candidate = (address: string, more: Partial<Candidate>): Candidate => ({
    ...{ address, offset: 100, latencyMs: 1 },
    ...more,
  });
  const best = (...candidates: readonly Candidate[]) => rankCandidates(candidates)[0]?.address;

  test('who has the most of the data, however slow and far', () => {
    const near = candidate('near:1', { offset: 99, latencyMs: 0.1, priority: 1 });
    const far = candidate('far:1', { latencyMs: 90, unavailableTo: 2 });
    expect(best(near, far)).toBe('far:1');
  });

  test('of equals the one that all managers see', () => {
    const missed = candidate('missed:1', { latencyMs: 0.1, unavailableTo: 1 });
    expect(best(missed, candidate('seen:1', { latencyMs: 9 }))).toBe('seen:1');
  });

  test('then the lower replica-priority, as Sentinel has it', () => {
    const preferred = candidate('preferred:1', { latencyMs: 9, priority: 10 });
    expect(best(candidate('near:1', {}), preferred)).toBe('preferred:1');
  });

  test('then the nearest', () => {
    expect(best(candidate('a:1', { latencyMs: 2 }), candidate('b:1', { latencyMs: 1 }))).toBe(
      'b:1',
    );
  });

  test('one without a latency comes last, and two of them are no riddle', () => {
    const unknown = { latencyMs: Number.POSITIVE_INFINITY };
    expect(best(candidate('a:1', unknown), candidate('b:1', {}))).toBe('b:1');
    expect(best(candidate('b:1', unknown), candidate('a:1', unknown))).toBe('a:1');
  });

  test('nobody of nobody', () => {
    expect(rankCandidates([])).toEqual([]);
  });

  test('the order does not depend on the order in which they are named, and the first has most', () => {
    const any = fc.record({
      address: fc.constantFrom('a:1', 'b:1', 'c:1', 'd:1'),
      offset: fc.integer({ min: 0, max: 3 }),
      latencyMs: fc.constantFrom(0.5, 1, Number.POSITIVE_INFINITY),
      unavailableTo: fc.integer({ min: 0, max: 1 }),
      priority: fc.constantFrom(1, 100),
    });
    const all = fc.uniqueArray(any, { selector: ({ address }) => address });
    fc.assert(
      fc.property(
        all.chain((some) =>
          fc.tuple(fc.constant(some), fc.shuffledSubarray(some, { minLength: some.length })),
        ),
        ([some, shuffled]) => {
          const ranked = rankCandidates(some);
          expect(rankCandidates(shuffled)).toEqual(ranked);
          for (const each of some) expect(each.offset).toBeLessThanOrEqual(ranked[0]?.offset ?? 0);
        },
      ),
    );
  });
});
