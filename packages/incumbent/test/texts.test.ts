// How durations, values and reasons are shown, and which of them are the same.
import { expect, test } from 'vitest';
import { checkCandidate, describeValue } from '../src/base/candidate.ts';
import { formatDuration } from '../src/base/duration.ts';
import type { NotElectedReason } from '../src/base/not-elected.ts';
import { describeNotElected, sameReason } from '../src/base/not-elected.ts';
import type { TermSummary } from '../src/record/record.ts';
import { appendTerm, sameView } from '../src/record/record.ts';

test.each([
  [0, '0ms'],
  [0.126, '0.13ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [1_500, '1.5s'],
  [999.999, '1s'],
  [60_000, '1m'],
  [103_700, '1m 43.7s'],
  [119_999, '2m'],
  [7_199_000, '1h 59m 59s'],
  [7_200_000, '2h'],
  [5_400_000, '1h 30m'],
  [86_400_000, '1d'],
  [90_061_000, '1d 1h 1m 1s'],
])('%d ms are shown as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test.each([
  [-5, '0ms'],
  [0, '0ms'],
  [340, '340ms'],
  [9_940, '9.9s'],
  [10_400, '10s'],
  [61_000, '1m 1s'],
])('a candidate that stands aside for %d ms more reads %s', (ms, text) => {
  expect(describeNotElected({ kind: 'aside', untilUnixMs: 1_000_000 + ms }, 1_000_000)).toBe(
    `this candidate has just given the seat up and lets others go first for ${text}`,
  );
});

test.each([
  [null, 'null'],
  [undefined, 'undefined'],
  ['x'.repeat(99), `"${'x'.repeat(60)}"`],
  [5n, '5n'],
  [5, '5'],
  [true, 'true'],
  [[1], 'a list'],
  [{}, 'a value of type object'],
  [() => {}, 'a value of type function'],
  [Symbol('x'), 'a value of type symbol'],
])('%o is described as %s', (value, text) => {
  expect(describeValue(value)).toBe(text);
});

test.each([[[]], [null], ['x'], [undefined]])('a candidate is no %o', (given) => {
  expect(() => checkCandidate({}, given as never)).toThrow('candidate must be an object');
});

test('a candidate has the options that are given, over those given before', () => {
  const base = { id: 'a', addresses: ['x:1'] };
  expect(checkCandidate(base, { id: 'b' })).toEqual({ id: 'b', addresses: ['x:1'] });
  expect(() => checkCandidate(base, { name: 'b' } as never)).toThrow('a candidate has no "name"');
});

const atMs = 1_000_000;

test.each<readonly [NotElectedReason, NotElectedReason, boolean]>([
  [{ kind: 'led', id: 'a', token: 1n }, { kind: 'led', id: 'a', token: 1n }, true],
  [{ kind: 'led', id: 'a', token: 1n }, { kind: 'led', id: 'b', token: 1n }, false],
  [{ kind: 'led', id: 'a', token: 1n }, { kind: 'led', id: 'a', token: 2n }, false],
  [{ kind: 'led', id: 'a' }, { kind: 'held', by: 'a', untilUnixMs: atMs }, false],
  [
    { kind: 'reserved', for: 'b', untilUnixMs: atMs },
    { kind: 'reserved', for: 'b', untilUnixMs: atMs + 999 },
    true,
  ],
  [
    { kind: 'reserved', for: 'b', untilUnixMs: atMs },
    { kind: 'reserved', for: 'b', untilUnixMs: atMs - 1_000 },
    false,
  ],
  [
    { kind: 'reserved', for: 'b', untilUnixMs: atMs },
    { kind: 'reserved', untilUnixMs: atMs },
    false,
  ],
  [
    { kind: 'held', by: 'a', untilUnixMs: atMs },
    { kind: 'held', by: 'b', untilUnixMs: atMs },
    false,
  ],
  [
    { kind: 'held', by: 'a', untilUnixMs: atMs },
    { kind: 'held', by: 'a', untilUnixMs: atMs },
    true,
  ],
  [{ kind: 'unhealthy', error: 1 }, { kind: 'unhealthy', error: 2 }, true],
  [{ kind: 'unreachable', cause: 1 }, { kind: 'unreachable', cause: 2 }, true],
])('%o and %o are one reason: %s', (a, b, isSame) => {
  expect(sameReason(a, b)).toBe(isSame);
  expect(sameReason(b, a)).toBe(isSame);
  expect(sameReason(undefined, b)).toBe(false);
});

test('a record keeps the fifty terms that ended last', () => {
  const term = (n: number): TermSummary => ({
    token: BigInt(n),
    id: 'a',
    incarnation: 'x',
    fromUnixMs: n,
    toUnixMs: n,
    why: 'resigned',
  });
  let history: readonly TermSummary[] = [];
  for (let n = 1; n <= 60; n += 1) history = appendTerm(history, term(n));
  expect(history.map(({ token }) => Number(token))).toEqual(
    Array.from({ length: 50 }, (_, i) => i + 11),
  );
});

test('a view is another one when its leader is, or its proclamation', () => {
  const leader = { id: 'a', incarnation: 'x', addresses: ['h:1'], metadata: { zone: '1' } };
  const view = { state: 'led', leader, token: 1n, sinceUnixMs: 1 } as const;
  expect(sameView(view, { ...view, sinceUnixMs: 2 })).toBe(true);
  for (const other of [
    { ...view, state: 'vacant' } as const,
    { ...view, token: 2n },
    { ...view, leader: { ...leader, incarnation: 'y' } },
    { ...view, leader: { ...leader, addresses: ['h:2'] } },
    { ...view, leader: { ...leader, metadata: { zone: '2' } } },
    { state: 'led', token: 1n, sinceUnixMs: 1 } as const,
  ]) {
    expect(sameView(view, other)).toBe(false);
    expect(sameView(other, view)).toBe(false);
  }
  const vacant = { state: 'vacant', sinceUnixMs: 1 } as const;
  expect(sameView(vacant, { ...vacant, sinceUnixMs: 2 })).toBe(true);
});
