import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KnownTerm } from '../../src/history/known-term.ts';
import { mergeTerms, sameTerm, termsShown } from '../../src/history/known-term.ts';

const knowledge: fc.Arbitrary<KnownTerm> = fc.record({
  token: fc.constant('7'),
  incarnation: fc.constant('i'),
  id: fc.constantFrom('a', 'b'),
  fromUnixMs: fc.integer({ min: 0, max: 3 }),
  end: fc.option(
    fc.record({
      toUnixMs: fc.integer({ min: 3, max: 5 }),
      why: fc.constantFrom('unclean', 'resigned', 'stalled'),
    }),
  ),
});

test('knowledge of a term in any order, and told twice, ends in the same', () => {
  fc.assert(
    fc.property(
      fc
        .array(knowledge, { minLength: 1, maxLength: 6 })
        .chain((told) =>
          fc.tuple(
            fc.constant(told),
            fc.shuffledSubarray([...told, ...told], { minLength: 2 * told.length }),
          ),
        ),
      ([told, again]) => {
        expect(again.reduce(mergeTerms)).toEqual(told.reduce(mergeTerms));
      },
    ),
  );
});

test('an end is not forgotten, and a reason of the leader says more than none', () => {
  const led: KnownTerm = { token: '1', incarnation: 'i', id: 'a', fromUnixMs: 5, end: null };
  const unclean = { ...led, end: { toUnixMs: 8, why: 'unclean' } };
  const resigned = { ...led, end: { toUnixMs: 9, why: 'resigned' } };
  expect(mergeTerms(unclean, led).end).toEqual(unclean.end);
  // The store tells when the seat was won, and the leader when its term began.
  expect(mergeTerms({ ...unclean, fromUnixMs: 6 }, led).fromUnixMs).toBe(6);
  expect(mergeTerms(unclean, resigned).end).toEqual(resigned.end);
  expect(sameTerm(led, unclean)).toBe(false);
});

test('a store shows its history, and the term that leads', () => {
  const past = { id: 'a', incarnation: 'i', fromUnixMs: 1, toUnixMs: 2, why: 'resigned' as const };
  const leader = { id: 'b', incarnation: 'j', addresses: [], metadata: {} };
  const history = [{ ...past, token: 1n }];
  const over = {
    ...{ token: '1', incarnation: 'i', id: 'a', fromUnixMs: 1 },
    end: { toUnixMs: 2, why: 'resigned' },
  };
  expect(
    termsShown({ history, view: { state: 'led', leader, token: 2n ** 70n, sinceUnixMs: 3 } }),
  ).toEqual([
    over,
    { token: String(2n ** 70n), incarnation: 'j', id: 'b', fromUnixMs: 3, end: null },
  ]);
  expect(termsShown({ history, view: { state: 'vacant', token: 1n, sinceUnixMs: 3 } })).toEqual([
    over,
  ]);
});
