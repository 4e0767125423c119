import { expect, test } from 'vitest';
import type { TestFile, Verdict } from '../src/tests.ts';
import { failsAgain } from '../src/twice.ts';

const passed: Verdict = { kind: 'passed' };
const wrong = failure('expected 1 to be 2');
const slow = failure('Test timed out in 5000ms.');
const stuck: Verdict = { kind: 'timeout', afterMs: 1_000 };

function failure(text: string): Verdict & { readonly kind: 'failed' } {
  return { kind: 'failed', testFile: 'a', testId: 'id', text };
}

function fileOf(path: string): TestFile {
  return { path, ms: 1, slowestTestMs: 1, reached: new Set() };
}

/** @param script what each run ends with, in turn */
async function play(script: readonly Verdict[], paths: readonly string[] = ['a']) {
  const left = [...script];
  const runs: string[] = [];
  const verdict = await failsAgain(7, paths.map(fileOf), async (mutant, { path }, testId) => {
    runs.push([mutant ?? 'none', path, ...(testId === undefined ? [] : [testId])].join(' '));
    const next = left.shift();
    if (next === undefined) throw new Error('nobody expects one more run');
    return next;
  });
  expect(left).toEqual([]);
  return { verdict, runs };
}

test('a failure counts if the same test fails again, and no other file runs', async () => {
  const { verdict, runs } = await play([wrong, wrong], ['a', 'b']);
  expect(verdict).toEqual(wrong);
  expect(runs).toEqual(['7 a', '7 a id']);
});

test('a test that passes when it runs again has not failed, and the rest of its file runs', async () => {
  const { verdict, runs } = await play([wrong, passed, passed, wrong, wrong], ['a', 'b']);
  expect(verdict).toEqual(wrong);
  expect(runs).toEqual(['7 a', '7 a id', '7 a', '7 b', '7 b id']);
});

test('a file whose tests fail once each says nothing', async () => {
  const { verdict, runs } = await play([wrong, passed, slow, passed, passed], ['a', 'b']);
  expect(verdict).toEqual(passed);
  expect(runs).toEqual(['7 a', '7 a id', '7 a', '7 a id', '7 b']);
});

test.each([
  ['a test', slow, 'a id'],
  ['a file', stuck, 'a'],
])('%s that takes too long twice counts if it does not without the mutant', async (...row) => {
  const [, tooLong, asked] = row;
  const { verdict, runs } = await play([tooLong, tooLong, passed]);
  expect(verdict).toEqual(tooLong);
  expect(runs).toEqual(['7 a', `7 ${asked}`, `none ${asked}`]);
});

test('a test that takes too long without the mutant, too, says nothing', async () => {
  const { verdict } = await play([slow, slow, slow, slow, slow, slow]);
  expect(verdict).toEqual(passed);
});

test('a file that fails outside of any test runs again as a whole', async () => {
  const outside = { ...failure('nobody caught: gone'), testId: undefined };
  const { verdict, runs } = await play([outside, wrong]);
  expect(verdict).toEqual(wrong);
  expect(runs).toEqual(['7 a', '7 a']);
});
