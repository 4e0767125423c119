import { describe, expect, it } from 'vitest';
import type { Effect } from '../src/trial/effect.ts';
import { formatEffect, parseEffect } from '../src/trial/effect.ts';
import { Judge } from '../src/trial/judge.ts';

/** One effect as people write it down: time in ms. */
function effect(
  token: number,
  candidate: string,
  atMs: number,
  { kind = 'beat', group = token * 100, pid = group }: Partial<Effect> = {},
): string {
  const atNs = BigInt(Math.round(atMs * 1e6));
  return formatEffect({ token: BigInt(token), candidate, group, pid, atNs, kind }).trimEnd();
}

function judge(...lines: string[]): string[] {
  const judge = new Judge();
  for (const line of lines) judge.add(line);
  return judge.violations().map(({ guarantee, message }) => `${guarantee}: ${message}`);
}

const start = { kind: 'start' } as const;

describe('the judge of a fenced log', () => {
  it('accepts terms one after the other, with helpers of one group', () => {
    expect(
      judge(
        effect(1, 'a', 0, start),
        effect(1, 'a', 5),
        // Two processes of a group may write in another order than they read the clock.
        effect(1, 'a', 7, { pid: 101 }),
        effect(1, 'a', 6),
        effect(2, 'b', 8, start),
        effect(2, 'b', 9, { kind: 'stop' }),
        effect(5, 'a', 10, start),
      ),
    ).toEqual([]);
  });

  it('finds an overlap of 1 ms, although the lines are in order', () => {
    expect(
      judge(effect(41, 'c3', 0), effect(41, 'c3', 12), effect(42, 'c7', 11), effect(42, 'c7', 50)),
    ).toEqual(['mutual exclusion: terms 41 (c3) and 42 (c7) overlap by 1.000 ms']);
  });

  it('finds an overlap of a single instant', () => {
    expect(judge(effect(1, 'a', 0), effect(1, 'a', 3), effect(2, 'b', 3))).toEqual([
      'mutual exclusion: terms 1 (a) and 2 (b) overlap by 0.000 ms',
    ]);
  });

  it('finds a term inside another one, and every pair of three', () => {
    expect(
      judge(effect(1, 'a', 0), effect(1, 'a', 90), effect(2, 'b', 10), effect(3, 'c', 15)),
    ).toEqual([
      'mutual exclusion: terms 1 (a) and 2 (b) overlap by 0.000 ms',
      'mutual exclusion: terms 1 (a) and 3 (c) overlap by 0.000 ms',
    ]);
    expect(
      judge(
        ...[1, 2, 3].map((token) => effect(token, 'abc'.charAt(token - 1), token)),
        ...[1, 2, 3].map((token) => effect(token, 'abc'.charAt(token - 1), 20 + token)),
      ).filter((line) => line.startsWith('mutual exclusion')),
    ).toEqual([
      'mutual exclusion: terms 1 (a) and 2 (b) overlap by 19 ms',
      'mutual exclusion: terms 1 (a) and 3 (c) overlap by 18 ms',
      'mutual exclusion: terms 2 (b) and 3 (c) overlap by 19 ms',
    ]);
  });

  it('finds an effect that came after one of a newer term, whatever its clock said', () => {
    // Read the clock, was frozen, wrote.
    expect(judge(effect(1, 'a', 0), effect(2, 'b', 20), effect(1, 'a', 10))).toEqual([
      'order of effects: 1 effect of term 1 (a) came after one of term 2 (b), the last in line 3',
    ]);
  });

  it('counts late effects instead of listing them', () => {
    expect(
      judge(
        effect(1, 'a', 0),
        effect(2, 'b', 20),
        ...Array.from({ length: 1000 }, (_, i) => effect(1, 'a', 1 + i / 1000)),
      ),
    ).toEqual([
      'order of effects: 1000 effects of term 1 (a) came after one of term 2 (b), the last in line 1002',
    ]);
  });

  it('finds tokens that do not rise', () => {
    expect(judge(effect(2, 'a', 0), effect(1, 'b', 10), effect(3, 'a', 20))).toEqual([
      'rising tokens: term 1 (b) began, in line 2, after term 2 (a)',
    ]);
  });

  it('compares tokens as numbers of any size', () => {
    const big = 2n ** 80n;
    const lines = [big - 1n, big].map((token, i) =>
      formatEffect({
        token,
        candidate: 'a',
        group: i + 2,
        pid: i + 2,
        atNs: BigInt(i),
        kind: 'start',
      }).trimEnd(),
    );
    expect(judge(...lines)).toEqual([]);
    expect(judge(...lines.reverse())).toHaveLength(1);
  });

  it('finds a token used by two candidates', () => {
    expect(judge(effect(1, 'a', 0), effect(1, 'b', 10))).toEqual([
      'one owner: token 1 is used by a (group 100) and by b (group 100)',
    ]);
  });

  it('finds a token used by two incarnations of one candidate', () => {
    expect(judge(effect(1, 'a', 0), effect(1, 'a', 10, { group: 7 }))).toEqual([
      'one owner: token 1 is used by a (group 100) and by a (group 7)',
    ]);
  });

  it('finds a token given to two programs', () => {
    expect(judge(effect(1, 'a', 0, start), effect(1, 'a', 10, start))).toEqual([
      'one owner: token 1 was given to two programs of a',
    ]);
  });

  it('finds lines that are no effects', () => {
    expect(judge('1 a 100 100 5 be', '')).toEqual([
      'readable log: line 1 is no effect: "1 a 100 100 5 be"',
      'readable log: line 2 is no effect: ""',
    ]);
  });

  it('tells what each term did', () => {
    const judge = new Judge();
    for (const line of [effect(1, 'a', 1, start), effect(1, 'a', 4), effect(2, 'b', 9, start)]) {
      judge.add(line);
    }
    expect(judge.effects).toBe(3);
    expect(judge.terms[0]).toEqual({
      token: 1n,
      candidate: 'a',
      group: 100,
      firstNs: 1_000_000n,
      lastNs: 4_000_000n,
      effects: 2,
      firstLine: 1,
      lastLine: 2,
    });
  });
});

it('reads back the effects it writes', () => {
  const written: Effect = {
    token: 2n ** 64n,
    candidate: 'host-7',
    group: 12,
    pid: 13,
    atNs: 2n ** 63n,
    kind: 'stop',
  };
  expect(parseEffect(formatEffect(written).trimEnd())).toEqual(written);
});
