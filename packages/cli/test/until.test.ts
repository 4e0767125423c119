import { afterEach, beforeEach, expect, test } from 'vitest';
import { UsageError } from '../src/failure.ts';
import { parseUntil } from '../src/until.ts';

const now = Date.UTC(2030, 0, 1);
const utc = (...parts: Parameters<typeof Date.UTC>) => Date.UTC(...parts);

let zone: string | undefined;
beforeEach(() => {
  zone = process.env['TZ'];
  process.env['TZ'] = 'Europe/Zurich';
});
afterEach(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

test.each([
  ['90s', 90_000],
  ['30m', 1_800_000],
  ['2h', 7_200_000],
  ['1.5h', 5_400_000],
  ['3d', 259_200_000],
  ['100d', 8_640_000_000],
])('%s is that long from now', (text, ms) => {
  expect(parseUntil(text, now)).toBe(now + ms);
});

test.each([
  ['2030-05-01T06:00Z', utc(2030, 4, 1, 6)],
  ['2030-05-01T06:00:30.5Z', utc(2030, 4, 1, 6, 0, 30, 500)],
  ['2030-05-01T06:00+02:00', utc(2030, 4, 1, 4)],
  ['2030-05-01 06:00 -0730', utc(2030, 4, 1, 13, 30)],
  // Summer and winter in Zurich.
  ['2030-05-01T06:00', utc(2030, 4, 1, 4)],
  ['2030-02-01 06:00', utc(2030, 1, 1, 5)],
  ['2030-05-01', utc(2030, 3, 30, 22)],
])('%s is a moment', (text, unixMs) => {
  expect(parseUntil(text, now)).toBe(unixMs);
});

test.each([
  ['2', '"2" has no unit: write a time such as 2030-05-01T06:00'],
  ['soon', 'is neither a time nor a duration'],
  ['', 'is neither a time nor a duration'],
  ['2w', 'is neither a time nor a duration'],
  ['06:00', 'is neither a time nor a duration'],
  ['2030-02-30', 'is no day and time of the calendar'],
  ['2030-05-01T25:00', 'is no day and time of the calendar'],
  ['2029-05-01', 'is not in the future; --lift ends a drain'],
  ['-2h', 'is not in the future'],
  ['0s', 'is not in the future'],
  ['99999999d', 'is beyond the year 9999'],
])('refuses --until %j', (text, words) => {
  expect(() => parseUntil(text, now)).toThrow(UsageError);
  expect(() => parseUntil(text, now)).toThrow(words);
});
