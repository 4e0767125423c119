import { resolveTiming } from 'incumbent';
import { describe, expect, it } from 'vitest';
import { followBoundMs, takeoverBoundMs } from '../src/following/bound.ts';
import type { Played } from '../src/following/judge.ts';
import {
  failedOutside,
  lateCalls,
  lateTakeovers,
  neverServed,
  servedOutside,
  windowsOf,
} from '../src/following/judge.ts';
import type { Failure, Served } from '../src/following/messages.ts';
import { planChanges } from '../src/following/plan.ts';
import { leftOver } from '../src/following/resources.ts';
import { readTerms } from '../src/following/terms.ts';

const timing = resolveTiming({ lease: '2s', stopTimeout: '1s' });

/** Term 1 leads to 1,000 and is struck at 900; term 2 begins at 1,500. */
const told = [
  { token: '1', candidate: 'a', beginsMs: 100 },
  { token: '1', candidate: 'a', untilMs: 800 },
  { token: '1', candidate: 'a', untilMs: 1_000 },
  { token: '2', candidate: 'b', beginsMs: 1_500 },
  { token: '2', candidate: 'b', untilMs: 9_000 },
  { token: '2', candidate: 'b', overMs: 8_000 },
];
const halfALine = '{"token":"2","can';
const terms = readTerms([...told.map((line) => JSON.stringify(line)), halfALine].join('\n'));
const played: readonly Played[] = [
  { fault: 'kill', calm: true, atMs: 900, struck: 1n, next: 2n, beginsMs: 1_500 },
];
const windows = windowsOf(terms, played, () => 200);

const failed = (startMs: number, endMs: number): Failure => {
  return { client: 'client-1', way: 'plain', startMs, endMs, why: 'UNAVAILABLE' };
};

const activity = (token: bigint, firstMs: number, lastMs: number) => ({
  ...{ token, candidate: 'a', group: 7, effects: 2, firstLine: 1, lastLine: 2 },
  ...{ firstNs: BigInt(firstMs * 1e6), lastNs: BigInt(lastMs * 1e6) },
});

describe('the terms that services tell', () => {
  it('end with the last deadline that was told, or sooner if the process knew so', () => {
    expect(terms).toEqual([
      { token: 1n, candidate: 'a', beginsMs: 100, endsMs: 1_000 },
      { token: 2n, candidate: 'b', beginsMs: 1_500, endsMs: 8_000 },
    ]);
  });
});

describe('the judge of following', () => {
  it('lets calls fail from the strike until clients have had time to follow', () => {
    expect(windows).toEqual([
      { fromMs: Number.NEGATIVE_INFINITY, toMs: 300, token: 1n, isStruck: false },
      { fromMs: 900, toMs: 1_700, token: 2n, isStruck: true },
    ]);
    const fine = [failed(0, 5), failed(850, 901), failed(1_000, 1_600), failed(1_699, 3_000)];
    expect(failedOutside(fine, windows)).toEqual([]);
  });

  it.for([
    [400, 410],
    [880, 899],
    [1_701, 1_702],
  ] as const)('finds a call that failed from %i to %i', ([startMs, endMs]) => {
    expect(failedOutside([failed(startMs, endMs)], windows)).toHaveLength(1);
  });

  it('counts a change by chance from when the last belief was over', () => {
    expect(windowsOf(terms, [], () => 200)[1]).toMatchObject({ fromMs: 1_000, isStruck: false });
  });

  it('finds what was served before a term began, after its belief, and under no term', () => {
    expect(servedOutside([activity(1n, 100, 1_000), activity(2n, 1_500, 8_000)], terms)).toEqual(
      [],
    );
    for (const wrong of [activity(1n, 99, 500), activity(2n, 1_500, 8_001), activity(0n, 5, 6)]) {
      expect(servedOutside([wrong], terms)).toHaveLength(1);
    }
  });

  it('finds a way by which nothing was served in a term', () => {
    const way = { client: 'client-1', way: 'plain' };
    const served = (firstMs: number): Served[] => [{ ...way, token: '2', calls: 9, firstMs }];
    const only = windows.slice(1);
    const caller = { ...way, dueMs: 0 };
    expect(neverServed(served(1_600), [caller], only, 5_000)).toEqual([]);
    expect(neverServed(served(5_001), [caller], only, 5_000)).toHaveLength(1);
    expect(neverServed([], [caller], only, 5_000)).toHaveLength(1);
    // It did not last.
    expect(neverServed([], [caller], only, 1_650)).toEqual([]);
    // It had hardly begun to call.
    expect(neverServed([], [{ ...way, dueMs: 5_000 }], only, 5_000)).toEqual([]);
  });

  it('finds changes and calls that took too long', () => {
    expect(lateTakeovers(played, () => 600)).toEqual([]);
    expect(lateTakeovers(played, () => 599)).toHaveLength(1);
    expect(lateCalls([failed(0, 3_000)], () => 3_000)).toEqual([]);
    expect(lateCalls([failed(0, 3_001)], () => 3_000)).toHaveLength(1);
  });

  it('finds resources that are open and were not', () => {
    const before = { sockets: 2, descriptors: 20, active: { PipeWrap: 1 } };
    expect(leftOver(before, { ...before, sockets: 1, active: {} })).toEqual([]);
    const now = { sockets: 3, descriptors: 20, active: { PipeWrap: 1, Timeout: 1 } };
    expect(leftOver(before, now)).toEqual(['3 sockets instead of 2', '1 Timeout instead of 0']);
  });
});

describe('the plan of following', () => {
  it('follows from the seed, with every fault among eight changes', () => {
    const changes = planChanges(8, 7, timing);
    expect(planChanges(8, 7, timing)).toEqual(changes);
    expect(new Set(changes.map(({ fault }) => fault)).size).toBe(4);
    expect(changes.filter(({ calm }) => calm)).toHaveLength(3);
  });

  it('freezes for longer than the lease', () => {
    for (const { freezeMs } of planChanges(200, 1, timing)) {
      expect(freezeMs).toBeGreaterThan(timing.leaseMs);
    }
  });

  it('bounds a take-over by what it has to wait for', () => {
    expect(Math.round(takeoverBoundMs('kill', timing))).toBe(4_540);
    expect(Math.round(takeoverBoundMs('resign', timing))).toBe(3_440);
    expect(Math.round(followBoundMs(timing))).toBe(1_773);
  });
});
