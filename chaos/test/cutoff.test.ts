import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../src/cutoff/election.ts';
import { overlapMs, tokensRise } from '../src/cutoff/judge.ts';
import type { Spell } from '../src/cutoff/messages.ts';
import { draw, sharedMs } from '../src/cutoff/picture.ts';
import type { ElectionPlan } from '../src/cutoff/plan.ts';
import { planRun } from '../src/cutoff/plan.ts';
import type { Recording } from '../src/cutoff/recording.ts';
import { faultsOf, seconds, table } from '../src/cutoff/report.ts';
import { readSettings } from '../src/cutoff/settings.ts';

function spell(fromMs: number, untilMs: number | undefined, token = '1'): Spell {
  return { fromMs, lastMs: (untilMs ?? fromMs) - 1, untilMs, token };
}

describe('the judge of a cut', () => {
  const a = { candidate: 'A', spells: [spell(0, 1_600)] };

  it('finds no overlap where one ends before the other begins', () => {
    expect(overlapMs([a, { candidate: 'B', spells: [spell(1_600, undefined)] }], 9_000)).toBe(0);
    expect(overlapMs([a, { candidate: 'B', spells: [] }], 9_000)).toBe(0);
  });

  it('counts from the first word of one to the last possible of the other', () => {
    const b = { candidate: 'B', spells: [spell(1_500, undefined)] };
    expect(overlapMs([a, b], 9_000)).toBe(100);
    expect(overlapMs([b, a], 9_000)).toBe(100);
    const still = { candidate: 'A', spells: [spell(0, undefined)] };
    expect(overlapMs([still, b], 9_000)).toBe(7_500);
  });

  it('looks at every term of everybody', () => {
    const back = { candidate: 'A', spells: [spell(0, 1_600), spell(5_000, 5_002, '3')] };
    const b = { candidate: 'B', spells: [spell(3_000, 6_000, '2')] };
    const c = { candidate: 'C', spells: [spell(5_999, undefined, '4')] };
    expect(overlapMs([back, b, c], 9_000)).toBe(3);
  });

  it('compares tokens as numbers, in the order of the terms', () => {
    const b = (token: string) => ({ candidate: 'B', spells: [spell(2_000, 3_000, token)] });
    const first = { candidate: 'A', spells: [spell(0, 1_600, '9')] };
    expect(tokensRise([b('10'), first])).toBe(true);
    expect(tokensRise([b('9'), first])).toBe(false);
    expect(tokensRise([b('8'), first])).toBe(false);
  });
});

describe('the verdict on a cut', () => {
  const limits = { tickMs: 2_000, servesMs: 10_000, judgeBound: true };
  const plan: ElectionPlan = { who: 'ours', scenario: 'cut', timeoutMs: 4_000 };
  const well: Outcome = {
    plan,
    overlapMs: 0,
    takeoverMs: 7_000,
    boundMs: 9_600,
    apartMs: 3_000,
    tokensRise: true,
    notPlayed: undefined,
    longestGapMs: 4,
  };
  const verdict = (change: Partial<Outcome>) => faultsOf({ ...well, ...change }, limits);

  it('names each guarantee that does not hold', () => {
    expect(verdict({})).toEqual([]);
    expect(verdict({ overlapMs: 0.01 })).toEqual(['two leaders for 0.010 ms']);
    expect(verdict({ tokensRise: false })).toEqual(['the token does not rise']);
    expect(verdict({ takeoverMs: 9_700 })).toEqual([
      'B led 9.7 s after the fault, and not within 9.6 s',
    ]);
    expect(verdict({ apartMs: undefined })).toEqual(['A did not lead']);
    const killed = { ...plan, scenario: 'quiet, killed' } as const;
    expect(verdict({ plan: killed, apartMs: undefined })).toEqual([]);
  });

  it('looks only for two leaders and tokens where the scenario did not happen', () => {
    const notPlayed = 'the place of A was gone before';
    const late = { notPlayed, takeoverMs: 60_000, apartMs: undefined };
    expect(verdict(late)).toBeUndefined();
    expect(verdict({ ...late, overlapMs: 3 })).toEqual(['two leaders for 3.0 ms']);
    expect(verdict({ ...late, tokensRise: false })).toEqual(['the token does not rise']);
    const row = { plan, fault: 'cut' as const, errors: ['x'] };
    const outcomes = [well, { ...well, ...late, takeoverMs: -2_000 }];
    expect(table([{ ...row, outcomes }]).split('\n')[1]).toMatch(
      /cut off +4 s +1 \(\+1 failed, \+1 not played\) +0 s +7\.0 s/,
    );
  });

  it('does not judge time in the tests', () => {
    expect(faultsOf({ ...well, takeoverMs: 60_000 }, { ...limits, judgeBound: false })).toEqual([]);
  });

  it("takes kazoo's two leaders for a sign that the cut was one, where there must be two", () => {
    const kazoo = (timeoutMs: number) => ({ ...plan, who: 'kazoo' as const, timeoutMs });
    expect(verdict({ plan: kazoo(4_000), overlapMs: 5_000 })).toEqual([]);
    expect(verdict({ plan: kazoo(4_000), overlapMs: 0 })?.[0]).toMatch(
      /nothing was put to the test/,
    );
    expect(verdict({ plan: kazoo(10_000), overlapMs: 0 })).toBeUndefined();
  });

  it('shows no overlap of a moment as none', () => {
    expect(seconds(0)).toBe('0.0 s');
    expect(seconds(3)).toBe('3.0 ms');
    const row = { plan, fault: 'cut' as const, errors: [] };
    const lines = (overlap: number) =>
      table([{ ...row, outcomes: [{ ...well, overlapMs: overlap }] }]).split('\n')[1];
    expect(lines(0)).toMatch(/cut off +4 s +1 +0 s +7.0 s/);
    expect(lines(3)).toMatch(/cut off +4 s +1 +3.0 ms +7.0 s/);
  });
});

describe('the plan of a run', () => {
  it('lets one election at most say when a fault comes', () => {
    for (const length of ['short', 'long'] as const) {
      for (const { elections } of planRun([4_000, 10_000], true, length)) {
        const quiet = elections.filter(({ scenario }) => scenario.startsWith('quiet'));
        expect(quiet.length).toBeLessThanOrEqual(1);
        expect(elections.length).toBeGreaterThan(0);
      }
    }
  });

  it('puts every way of losing a server to every timeout, in the long form', () => {
    const played = planRun([4_000, 10_000], true, 'long').flatMap(({ fault, elections }) =>
      elections.map(({ who, scenario, timeoutMs }) => `${who} ${scenario} ${fault} ${timeoutMs}`),
    );
    for (const timeoutMs of [4_000, 10_000]) {
      expect(played).toEqual(
        expect.arrayContaining([
          `ours cut cut ${timeoutMs}`,
          `ours deleted after cut ${timeoutMs}`,
          `ours deleted before cut ${timeoutMs}`,
          `ours quiet cut ${timeoutMs}`,
          `ours quiet freeze ${timeoutMs}`,
          `kazoo cut cut ${timeoutMs}`,
        ]),
      );
    }
    expect(played).toContain('ours before kazoo cut cut 4000');
    expect(played).toContain('kazoo before ours cut cut 4000');
    expect(new Set(played).size).toBe(played.length);
  });
});

describe('the options', () => {
  it('have the timeouts of the issue and 20 runs', () => {
    expect(readSettings([])).toMatchObject({
      runs: 20,
      timeoutsMs: [4_000, 10_000],
      length: 'long',
      peer: 'kazoo',
    });
    expect(readSettings(['--short'])).toMatchObject({ runs: 1, length: 'short' });
    expect(readSettings(['--timeout', '6s,15000'])).toMatchObject({ timeoutsMs: [6_000, 15_000] });
  });

  it('refuse settings that they do not know', () => {
    expect(() => readSettings(['--timeout', '3s'])).toThrow('from 4s to 40s');
    expect(() => readSettings(['--peer', 'curator'])).toThrow('kazoo, none, only');
    expect(() => readSettings(['--broken', 'luck'])).toThrow('no-wait, arithmetic, pings');
    expect(() => readSettings(['--runs', '0'])).toThrow('1 to 10000');
    expect(() => readSettings(['--record', 'a.svg'])).toThrow('.json');
  });
});

describe('the recorded cut of docs/evidence/zookeeper-safety.md', () => {
  const read = (name: string) =>
    readFileSync(new URL(`../../docs/evidence/${name}`, import.meta.url), 'utf8');
  const recording = JSON.parse(read('zookeeper-safety.json')) as Recording;

  it('has two leaders with kazoo, and never with us', () => {
    expect(sharedMs(recording.ours)).toBe(0);
    expect(sharedMs(recording.kazoo)).toBeGreaterThan(0);
  });

  it('is what the picture shows (npm run chaos:cutoff -- --draw docs/evidence/zookeeper-safety.json)', () => {
    expect(read('zookeeper-safety.svg')).toBe(draw(recording));
  });
});
