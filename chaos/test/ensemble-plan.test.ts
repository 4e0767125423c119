import { resolveTiming } from 'incumbent';
import { describe, expect, it } from 'vitest';
import { leaderBoundMs } from '../src/ensemble/bound.ts';
import type { Round } from '../src/ensemble/plan.ts';
import { faultNames, planRounds } from '../src/ensemble/plan.ts';
import { readSettings } from '../src/ensemble/settings.ts';
import { faultsOf } from '../src/harness/rounds.ts';
import { startSlackMs } from '../src/harness/start-slack.ts';
import { describePlan } from './plan-rules.ts';

function rounds(count: number, seed: number, parts = true): Round[] {
  const plan = planRounds(seed, parts);
  return Array.from({ length: count }, () => plan.next().value as Round);
}

describe('the plan of chaos on an ensemble', () => {
  describePlan(rounds, faultNames);

  it('begins with what every run needs, however short', () => {
    expect(rounds(6, 3).flatMap(faultsOf)).toEqual(
      expect.arrayContaining(['strand', 'freeze and delete', 'waiting: kill both']),
    );
  });

  it('freezes and cuts off for shorter and for longer than a session lives', () => {
    const lengths = rounds(500, 1).flatMap(({ leader }) =>
      leader?.fault === 'freeze both' || leader?.fault === 'silence' ? [leader.length] : [],
    );
    expect(Math.min(...lengths)).toBeLessThan(0.4);
    expect(Math.max(...lengths)).toBeGreaterThan(1.5);
  });

  it('parts no servers where there are no networks for them', () => {
    const faults = new Set(rounds(500, 2, false).flatMap(faultsOf));
    expect(faults).not.toContain('strand');
    expect([...faults].filter((fault) => /part|deafen|mute/.test(fault))).toEqual([]);
    expect(faults).toContain('servers: freeze leader');
  });
});

it('allows a session, two ticks, the wait of a successor and the start of processes', () => {
  const timings = [2_000, 4_000].map((sessionTimeoutMs) => resolveTiming({}, { sessionTimeoutMs }));
  expect(leaderBoundMs(timings, 500)).toBeCloseTo(
    4_000 + 2 * 500 + (1_600 * 1.05) / 0.95 + 3 * 400 + startSlackMs,
  );
});

describe('the command line of chaos on an ensemble', () => {
  it('has a short form', () => {
    expect(readSettings(['--short', '--seed', '5'])).toEqual({
      minutes: 2,
      candidates: 7,
      seed: 5,
      broken: undefined,
    });
    expect(readSettings([])).toMatchObject({ minutes: 30, candidates: 7 });
  });

  it.each([
    [['--minutes', '0'], '--minutes must be a whole number from 1'],
    [['--candidates', '3'], '--candidates must be a whole number from 4 to 50, not "3"'],
    [['--broken', 'leg'], '--broken knows no-guard, deaf-guard, no-wait, '],
    [['--what'], "Unknown option '--what'"],
  ])('refuses %j', (words, message) => {
    expect(() => readSettings(words)).toThrow(message);
  });
});
