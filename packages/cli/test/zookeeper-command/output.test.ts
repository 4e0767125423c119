import { expect, test } from 'vitest';
import type { Stat } from '../../../zookeeper/src/protocol/stat.ts';
import { painter } from '../../src/terminal/style.ts';
import { columns } from '../../src/terminal/table.ts';
import { toJson, visible } from '../../src/terminal/text.ts';
import { ago, isoTime, localTime } from '../../src/terminal/time.ts';
import { readReport } from '../../src/zookeeper-command/commands/srvr.ts';
import { dataForTerminal, dataToJson, hexDump } from '../../src/zookeeper-command/output/data.ts';
import {
  statHeader,
  statLines,
  statRow,
  statToJson,
} from '../../src/zookeeper-command/output/stat.ts';

const bytes = (...values: number[]) => Uint8Array.from(values);
const nowMs = new Date(2030, 4, 1, 6, 0, 0, 123).getTime();
const stat: Stat = {
  czxid: 0x1_0000_0002n,
  mzxid: 0x1_0000_0003n,
  ctime: nowMs - 90_000,
  mtime: nowMs - 500,
  version: 3,
  cversion: -1,
  aversion: 0,
  ephemeralOwner: 0x100_0000_0001n,
  dataLength: 1,
  numChildren: 0,
  pzxid: 2n,
};

test('nothing that a server sends can move the cursor or change colours', () => {
  expect(visible('a\u001b[2J\r\nb\u202e')).toBe('a\\x1b[2J\\r\\nb\\u{202e}');
  expect(toJson({ a: '\u001b\u009b\u202e' })).toBe('{"a":"\\u001b\\u009b\\u202e"}');
  expect(dataForTerminal(Buffer.from('a\u001b[2J'))).toBe('a\\x1b[2J\n');
  expect(dataForTerminal(Buffer.from('a\u001b\n\tb'))).toBe('a\\x1b\n\tb\n');
});

test('bigints are strings in JSON, and times ISO 8601', () => {
  expect(JSON.parse(toJson(statToJson(stat)))).toMatchObject({
    czxid: '4294967298',
    ephemeralOwner: '1099511627777',
    version: 3,
    mtime: isoTime(stat.mtime),
  });
});

test('data is base64 in JSON, and text when it is UTF-8; null stays null', () => {
  expect(dataToJson(Buffer.from('ü'))).toEqual({ data: 'w7w=', text: 'ü' });
  expect(dataToJson(bytes())).toEqual({ data: '', text: '' });
  expect(dataToJson(bytes(0xff, 0xc3))).toEqual({ data: '/8M=' });
  expect(dataToJson(null)).toEqual({ data: null });
  // A view into a larger buffer is only what it shows.
  expect(dataToJson(Buffer.from('xay').subarray(1, 2))).toEqual({ data: 'YQ==', text: 'a' });
  // A byte order mark is part of the data.
  expect(dataToJson(bytes(0xef, 0xbb, 0xbf))).toMatchObject({ text: '\ufeff' });
});

test('a terminal gets text with an end of line, else a hex dump', () => {
  expect(dataForTerminal(Buffer.from('a\nb\n'))).toBe('a\nb\n');
  expect(dataForTerminal(bytes())).toBe('');
  expect(dataForTerminal(bytes(0xff))).toMatch(/^00000000 {2}ff +\.\n$/);
  const dump = hexDump(Uint8Array.from({ length: 17 }, (_, i) => i + 0x3f)).split('\n');
  expect(dump).toEqual([
    '00000000  3f 40 41 42 43 44 45 46  47 48 49 4a 4b 4c 4d 4e  ?@ABCDEFGHIJKLMN',
    '00000010  4f                                                O',
    '',
  ]);
});

test('a stat is lines for people', () => {
  expect(statLines(stat, nowMs)).toEqual([
    'czxid           0x100000002',
    'ctime           2030-05-01 05:58:30 (1 minute ago)',
    'mzxid           0x100000003',
    'mtime           2030-05-01 05:59:59 (just now)',
    'pzxid           0x2',
    'version         3',
    'cversion        -1',
    'aversion        0',
    'ephemeralOwner  0x10000000001',
    'dataLength      1 byte',
    'numChildren     0',
  ]);
  // A session id is signed on the wire, and written without a sign.
  expect(statLines({ ...stat, ephemeralOwner: -2n }, nowMs)).toContain(
    'ephemeralOwner  0xfffffffffffffffe',
  );
});

test('the columns of a listing stand below their titles', () => {
  const row = statRow({ ...stat, ephemeralOwner: 0n }, 'x');
  expect(row).toBe('      3         0         1  2030-05-01 05:59:59  -                   x');
  expect(row.indexOf('x')).toBe(statHeader.indexOf('NAME'));
  expect(statRow(stat, 'x')).toContain('  0x10000000001  ');
});

test.each([
  [400, 'just now'],
  [1_000, '1 second ago'],
  [119_000, '1 minute ago'],
  [7_200_000, '2 hours ago'],
  [90_000_000, '1 day ago'],
  [800 * 86_400_000, '2 years ago'],
  [-5_000, 'in 5 seconds'],
])('%i ms before now is %s', (ms, words) => {
  expect(ago(nowMs - ms, nowMs)).toBe(words);
});

test('an unknown time is said to be unknown', () => {
  expect(localTime(Number.NaN)).toBe('at no valid time');
  expect(isoTime(2 ** 60)).toBe(null);
  expect(localTime(nowMs, true)).toBe('2030-05-01 06:00:00.123');
});

test('columns are aligned, and lines end with their last word', () => {
  expect(columns([['a', 'bb'], ['aaa'], ['', 'x']])).toEqual(['a    bb', 'aaa', '     x']);
});

test('there are colours on a terminal alone, and not with NO_COLOR', () => {
  const write = () => true;
  expect(painter({ write, isTTY: true }, {})('bad', 'x')).toBe('\u001b[31mx\u001b[39m');
  expect(painter({ write, isTTY: true }, { NO_COLOR: '1' })('bad', 'x')).toBe('x');
  expect(painter({ write, isTTY: true }, { TERM: 'dumb' })('bad', 'x')).toBe('x');
  expect(painter({ write }, {})('bad', 'x')).toBe('x');
});

test('an answer to `srvr` is read', () => {
  const answer = [
    'Zookeeper version: 3.8.0-5a02a05, built on 2022-11-04 04:02 UTC',
    'Latency min/avg/max: 0/0.25/12',
    'Received: 4',
    'Connections: 2',
    'Outstanding: 0',
    'Zxid: 0x100000a3f',
    'Mode: leader',
    'Node count: 5',
  ];
  expect(readReport('a:1', `${answer.join('\n')}\n`)).toEqual({
    ...{ server: 'a:1', mode: 'leader', version: '3.8.0', connections: 2, outstanding: 0 },
    ...{ nodes: 5, latencyMs: [0, 0.25, 12], zxid: '0x100000a3f', error: undefined },
  });
});

test('a server that does not serve, or is no ZooKeeper, is distinguished from one that does', () => {
  const words = 'This ZooKeeper instance is not currently serving requests';
  expect(readReport('a:1', `${words}\n`)).toMatchObject({ mode: undefined, error: words });
  expect(readReport('a:1', '')).toMatchObject({ mode: undefined, error: 'it answers nothing' });
  expect(readReport('a:1', '', 'refused')).toMatchObject({ mode: undefined, error: 'refused' });
});
