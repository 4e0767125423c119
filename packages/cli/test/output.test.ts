import fc from 'fast-check';
import { expect, test } from 'vitest';
import { span } from '../src/output/span.ts';
import { painter } from '../src/terminal/style.ts';
import { fields, table } from '../src/terminal/table.ts';
import { clip, columnsOf, padEnd, toJson, visible, visibleLines } from '../src/terminal/text.ts';
import { isoTime, localTime } from '../src/terminal/time.ts';

const plain = painter({ write() {} }, {});

test.each([
  ['\u001b[31mred\u001b[0m', '\\x1b[31mred\\x1b[0m'],
  ['a\nb\tc\r', 'a\\nb\\tc\\r'],
  ['\u009b2J', '\\x9b2J'],
  ['\u202egnp.exe', '\\u{202e}gnp.exe'],
  ['\u2028', '\\u{2028}'],
  ['\ud800', '\\u{d800}'],
  ['\u{e0041}', '\\u{e0041}'],
  ['zürich-1 東京 👩‍💻', 'zürich-1 東京 👩‍💻'],
])('shows %j as %s', (text, shown) => {
  expect(visible(text)).toBe(shown);
});

test('nothing that a terminal would obey is left, whatever the text', () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what must not be there
  const obeyed = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(visible(text)).not.toMatch(obeyed);
      expect(visibleLines(text).replaceAll('\n', '')).not.toMatch(obeyed);
      expect(toJson({ text })).not.toMatch(obeyed);
    }),
  );
});

test('JSON says the same after it was made harmless', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string({ unit: 'binary' }), (value, text) => {
      expect(JSON.parse(toJson({ value, text }))).toEqual(
        JSON.parse(JSON.stringify({ value, text })),
      );
    }),
  );
});

test('tokens are strings in JSON', () => {
  expect(toJson({ token: 2n ** 70n })).toBe('{"token":"1180591620717411303424"}');
});

test.each([
  ['host-7', 6],
  ['zürich', 6],
  ['e\u0301', 1],
  ['東京', 4],
  ['ｗｉｄｅ', 8],
  ['👩‍💻', 2],
  ['🇨🇭', 2],
  ['한국', 4],
  ['', 0],
])('%s takes %i columns', (text, columns) => {
  expect(columnsOf(text)).toBe(columns);
});

test('text is cut so that it fits, and never within a character', () => {
  expect(clip('host-7', 6)).toBe('host-7');
  expect(clip('host-77', 6)).toBe('host-…');
  expect(clip('東京都', 4)).toBe('東…');
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme' }).map(visible),
      fc.integer({ min: 1, max: 20 }),
      (text, columns) => {
        expect(columnsOf(clip(text, columns))).toBeLessThanOrEqual(columns);
      },
    ),
  );
});

test('columns line up when the text is wide', () => {
  const rows = [
    [{ text: '東京' }, { text: '1' }, { text: 'x' }],
    [{ text: 'abc' }, { text: '100' }, { text: 'y' }],
  ];
  const columns = [{ title: 'ID' }, { title: 'N', align: 'right' as const }, { title: 'LAST' }];
  const lines = table(columns, rows, plain, undefined);
  expect(lines).toEqual(['ID      N  LAST', '東京    1  x', 'abc   100  y']);
  const starts = lines.map((line) => columnsOf(line.slice(0, line.search(/(LAST|x|y)$/))));
  expect(new Set(starts).size).toBe(1);
});

test('the last column is cut to the width of the terminal', () => {
  const rows = [[{ text: 'a' }, { text: 'a long text that does not fit' }]];
  const lines = table([{ title: 'ID' }, { title: 'WHAT' }], rows, plain, 20);
  expect(lines[1]).toBe('a   a long text tha…');
});

test('names of fields line up, and further values stand below', () => {
  const entries = [
    ['id', [{ text: 'a' }]],
    ['address', [{ text: 'b' }, { text: 'c' }]],
  ] as const;
  expect(fields(entries, plain)).toEqual(['id       a', 'address  b', '         c']);
});

test('colours are for terminals, and never with NO_COLOR', () => {
  const terminal = { write() {}, isTTY: true };
  expect(painter(terminal, {})('bad', 'x')).toBe('\u001b[31mx\u001b[39m');
  expect(painter(terminal, { NO_COLOR: '1' })('bad', 'x')).toBe('x');
  expect(painter(terminal, { TERM: 'dumb' })('bad', 'x')).toBe('x');
  expect(painter({ write() {} }, { FORCE_COLOR: '1' })('bad', 'x')).toBe('x');
  expect(padEnd('x', 3)).toBe('x  ');
});

test.each([
  [0, '0ms'],
  [999, '999ms'],
  [999.7, '1s'],
  [12_345, '12.3s'],
  [59_960, '1m'],
  [192_000, '3m 12s'],
  [3_600_000, '1h'],
  [7_500_000, '2h 5m'],
  [86_400_000, '1d'],
  [273_600_000, '3d 4h'],
  [-5_000, '-5s'],
  [Number.NaN, '?'],
  [Number.POSITIVE_INFINITY, '?'],
])('a span of %d ms is %s', (ms, text) => {
  expect(span(ms)).toBe(text);
});

test('local times, and numbers that are no time', () => {
  const unixMs = new Date(2030, 4, 1, 6, 7, 8, 9).getTime();
  expect(localTime(unixMs)).toBe('2030-05-01 06:07:08');
  expect(localTime(unixMs, true)).toBe('2030-05-01 06:07:08.009');
  expect(localTime(1e300)).toBe('at no valid time');
  expect(isoTime(0)).toBe('1970-01-01T00:00:00.000Z');
  expect(isoTime(1e300)).toBeNull();
});
