import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { filesOf, groupNames } from '../src/groups.ts';
import type { Mutant } from '../src/mutants.ts';
import { mutantsOf } from '../src/mutants.ts';
import { table, unjudged } from '../src/report.ts';
import type { Fate } from '../src/survivors.ts';
import { parseSurvivors, readSurvivors, staleOf } from '../src/survivors.ts';

const root = resolve(import.meta.dirname, '../..');
const mutants = mutantsOf('a.ts', 'f(); g(); h(); i();');

function fate(mutant: Mutant | undefined, kind: Fate['kind'], by?: string): Fate {
  if (mutant === undefined) throw new Error('there are four');
  return { mutant, kind, by, why: undefined, isReached: true, ms: 1 };
}

function listOf(...entries: readonly (readonly [Mutant | undefined, string])[]) {
  const rest = entries.map(([mutant, verdict]) => [mutant?.id.slice('a.ts | '.length), verdict]);
  return parseSurvivors(JSON.stringify({ 'a.ts': Object.fromEntries(rest) }), 'list');
}

const scope = {
  files: new Set(['a.ts']),
  known: new Set(mutants.map(({ id }) => id)),
  everyFile: new Set(['a.ts', 'b.ts']),
};

test.each(['', 'equivalent', 'equivalent: no', 'killed: for a good reason', 3])(
  'a verdict says which it is and why: not %j',
  (verdict) => {
    const list = JSON.stringify({ 'a.ts': { 'f | bound | a → b': verdict } });
    expect(() => parseSurvivors(list, 'list')).toThrow('"a.ts | f | bound | a → b" must be');
  },
);

test('a survivor without a verdict is new, one with a verdict is not', () => {
  const fates = mutants.map((mutant) => ({ ...fate(mutant, 'survived'), group: 'lock' as const }));
  const judgements = listOf([mutants[1], 'equivalent: nothing looks at what it does']);
  const findings = { fates, judgements, stale: [] };
  expect(unjudged(findings).map(({ mutant }) => mutant.original)).toEqual(['f();', 'h();', 'i();']);
});

test('an entry is stale once its mutant is killed, or there is no such mutant or file', () => {
  const reason = 'accepted: it costs a second a day';
  const judgements = new Map([
    ...listOf([mutants[0], reason], [mutants[1], reason], [mutants[2], reason]),
    ['a.ts | x | bound | 1 → 2', { kind: 'accepted', reason }] as const,
    ['b.ts | x | bound | 1 → 2', { kind: 'accepted', reason }] as const,
    ['c.ts | x | bound | 1 → 2', { kind: 'accepted', reason }] as const,
  ]);
  const fates = [fate(mutants[0], 'survived'), fate(mutants[1], 'failed', 'a.test.ts')];
  expect(staleOf(judgements, fates, scope)).toEqual([
    { id: mutants[1]?.id, why: 'it is killed by a.test.ts' },
    { id: 'a.ts | x | bound | 1 → 2', why: 'there is no such mutant any more' },
    { id: 'c.ts | x | bound | 1 → 2', why: 'no group has this file' },
  ]);
});

test('the score counts the killed among those that are not equivalent', () => {
  const fates = [
    fate(mutants[0], 'failed', 'a.test.ts'),
    fate(mutants[1], 'failed', 'seeds'),
    fate(mutants[2], 'survived'),
    fate(mutants[3], 'survived'),
  ].map((each) => ({ ...each, group: 'lock' as const }));
  const judgements = listOf([mutants[2], 'equivalent: nothing looks at what it does']);
  const [, row] = table({ fates, judgements, stale: [] }).split('\n');
  expect(row?.split(/ {2,}/)).toEqual(['lock', '4', '1', '1', '0', '0', '1', '0', '1', '66.7 %']);
});

test('a kill by an integration test has a column of its own', () => {
  const by = 'packages/redis-failover/test-integration/steps.test.ts';
  const fates = [{ ...fate(mutants[0], 'failed', by), group: 'redis-failover' as const }];
  const [, row] = table({ fates, judgements: new Map(), stale: [] }).split('\n');
  expect(row?.split(/ {2,}/).slice(1, 6)).toEqual(['1', '0', '0', '1', '0']);
});

test('the list in the repository has a verdict for each entry, and names files of groups', () => {
  const files = new Set(groupNames.flatMap((group) => filesOf(group, root)));
  for (const id of readSurvivors(resolve(root, 'mutation/survivors.json')).keys()) {
    expect(files).toContain(id.split(' | ')[0]);
  }
});
