import { resolveTiming } from 'incumbent';
import { describe, expect, it } from 'vitest';
import { takeoverBoundMs } from '../src/file-store/bound.ts';
import { faults, planRounds } from '../src/file-store/plan.ts';
import { readSettings } from '../src/file-store/settings.ts';
import { table } from '../src/harness/report.ts';
import { startSlackMs } from '../src/harness/start-slack.ts';

const timing = resolveTiming({ lease: '3s', stopTimeout: '1s' });

describe('the plan of a chaos run', () => {
  it('follows from the seed alone', () => {
    expect(planRounds(45, 7, timing)).toEqual(planRounds(45, 7, timing));
    expect(planRounds(45, 7, timing)).not.toEqual(planRounds(45, 8, timing));
  });

  it('begins the same whatever its length', () => {
    expect(planRounds(60, 7, timing).slice(0, 40)).toEqual(planRounds(40, 7, timing));
  });

  it('has every fault in twenty rounds', () => {
    for (let seed = 0; seed < 50; seed += 1) {
      const rounds = planRounds(20, seed, timing);
      expect(rounds.map(({ number }) => number)).toEqual(
        Array.from({ length: 20 }, (_, i) => i + 1),
      );
      expect(new Set(rounds.map(({ fault }) => fault))).toEqual(new Set(faults));
    }
  });

  it('freezes for half a lease to three', () => {
    for (const { freezeMs } of planRounds(1_000, 1, timing)) {
      expect(freezeMs).toBeGreaterThanOrEqual(1_500);
      expect(freezeMs).toBeLessThanOrEqual(9_000);
    }
  });
});

it('allows a takeover one lease, a poll, three operations and the start of processes', () => {
  expect(takeoverBoundMs('kill supervisor', timing)).toBeCloseTo(
    3_000 * 1.05 + 1.1 * 600 + 3 * 500 + startSlackMs,
  );
  expect(takeoverBoundMs('resign', timing) - takeoverBoundMs('kill all', timing)).toBeCloseTo(
    // It hears of it, stops its program, gives the seat back.
    600 + 2 * 500 + 1_000,
  );
});

it('counts rounds and takeovers by fault', () => {
  const lines = table(faults, [
    { fault: 'resign', takeoverMs: 20 },
    { fault: 'resign', takeoverMs: 40 },
    { fault: 'resign', takeoverMs: 1_500 },
    { fault: 'freeze both', takeoverMs: undefined },
  ]).split('\n');
  const line = (fault: string) => lines.find((each) => each.startsWith(fault))?.split(/\s{2,}/);
  expect(line('resign')).toEqual(['resign', '3', '0', '0.04 s', '1.50 s', '1.50 s']);
  expect(line('freeze both')).toEqual(['freeze both', '1', '1', '-', '-', '-']);
});

describe('the command line of chaos', () => {
  it('has a short form', () => {
    expect(readSettings(['--short', '--seed', '5'])).toMatchObject({
      rounds: 20,
      candidates: 8,
      seed: 5,
      lease: '3s',
    });
    expect(readSettings(['--short', '--rounds', '3'])).toMatchObject({ rounds: 3 });
    expect(readSettings([])).toMatchObject({ rounds: 200, candidates: 20 });
  });

  it.each([
    [['--rounds', '0'], '--rounds must be a whole number from 1'],
    [['--candidates', '2'], '--candidates must be a whole number from 6 to 200, not "2"'],
    [['--seed', 'x'], '--seed must be a whole number'],
    [
      ['--broken', 'leg'],
      '--broken knows no-guard, deaf-guard, no-watchers, rash-proof, not "leg"',
    ],
    [['--what'], "Unknown option '--what'"],
  ])('refuses %j', (words, message) => {
    expect(() => readSettings(words)).toThrow(message);
  });
});
