import { expect, test } from 'vitest';
import { nearest } from '../src/terminal/nearest.ts';

test.each([
  ['nigthly', 'nightly'],
  ['nighly', 'nightly'],
  ['nightlyy', 'nightly'],
  ['Nightly', 'nightly'],
  ['nihgtyl', 'nightly'],
  ['yearly', undefined],
  // Of three letters one may be wrong.
  ['abx', 'abc'],
  ['axx', undefined],
  ['', undefined],
])('for %j the nearest is %j', (word, expected) => {
  expect(nearest(word, ['hourly', 'nightly', 'abc'])).toBe(expected);
});

test('a name is not the nearest to itself, and the first of equals wins', () => {
  expect(nearest('job-1', ['job-1', 'job-2', 'job-3'])).toBe('job-2');
});
