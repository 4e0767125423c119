/**
 * The valid contents of the znodes, and those that are refused without a change. See also
 * `gem-golden.test.ts`.
 */
import { describe, expect, test } from 'vitest';
import type { FailoverRequest, PrimaryRecord } from '../src/layout.ts';
import {
  decodeNodes,
  decodePosition,
  decodePrimary,
  decodeReport,
  decodeRequest,
  encodePosition,
  encodePrimary,
  encodeRequest,
  isMovedByGem,
} from '../src/layout.ts';
import { rubyFloat } from '../src/ruby-float.ts';

const path = '/set/primary';
const [a, b] = ['a:1', 'b:2'];

const plain: PrimaryRecord = {
  ...{ term: 0, primary: null, former: null, replicationId: null, runId: null, gemViews: false },
  ...{ viewMs: 0, manager: 'm', token: '1', manualSeen: '0' },
};

describe('primary', () => {
  test.each<[string, PrimaryRecord]>([
    ['as it is at first', plain],
    [
      'with all that it may hold',
      {
        ...{
          ...plain,
          term: 7,
          primary: a,
          former: b,
          replicationId: 'f',
          runId: 'r',
          viewMs: 1_000,
        },
        ...{ gemViews: true, lineage: { f: 5 }, promoting: { f: 6 }, discarded: { [b]: 'r2' } },
      },
    ],
  ])('%s is read as it was written', (_, record) => {
    expect(decodePrimary(path, encodePrimary(record))).toEqual(record);
  });

  test('does not hold what says nothing', () => {
    expect(Object.keys(JSON.parse(encodePrimary(plain)))).toEqual([
      ...['term', 'primary', 'former', 'replicationId', 'runId', 'viewMs', 'manager', 'token'],
      'manualSeen',
    ]);
  });

  test('of version 0.1.0 has less, and is read', () => {
    const { replicationId: _, runId: __, gemViews: ___, ...older } = plain;
    expect(decodePrimary(path, JSON.stringify(older))).toEqual(plain);
  });

  test.each([
    ...[{ term: -1 }, { term: 1.5 }, { term: '1' }, { term: undefined }, { primary: 7 }],
    ...[{ primary: undefined }, { former: 7 }, { former: undefined }, { replicationId: 7 }],
    ...[{ runId: 7 }, { gemViews: 'yes' }, { gemViews: null }, { viewMs: -1 }, { viewMs: null }],
    ...[{ manager: 7 }, { token: 7 }, { manualSeen: 7 }, { lineage: null }, { lineage: [] }],
    ...[{ lineage: { f: '5' } }, { lineage: { f: 0.5 } }, { promoting: { f: null } }],
    ...[{ promoting: 7 }, { discarded: { [b]: 7 } }, { discarded: [] }, { discarded: null }],
  ])('with %j is refused', (more) => {
    expect(() => decodePrimary(path, JSON.stringify({ ...plain, ...more }))).toThrow(
      expect.objectContaining({ name: 'LayoutError', code: 'LAYOUT', path }),
    );
  });
});

describe('nodes and reports', () => {
  test.each(['not JSON', '7', 'null', '"text"', '[]', '{}'])('%s is neither', (text) => {
    for (const decode of [
      decodeNodes,
      decodeReport,
      decodePosition,
      decodePrimary,
      decodeRequest,
    ]) {
      expect(() => decode(path, text)).toThrow(
        `the node /set/primary holds ${JSON.stringify(text)}`,
      );
    }
  });

  test.each([
    ...[{ master: 7 }, { slaves: null }, { slaves: [7] }, { slaves: 'a' }, { unavailable: [7] }],
    ...[{ unavailable: {} }],
  ])('nodes with %j is refused', (more) => {
    const nodes = { master: a, slaves: [b], unavailable: [] };
    expect(decodeNodes(path, JSON.stringify(nodes))).toEqual(nodes);
    expect(() => decodeNodes(path, JSON.stringify({ ...nodes, ...more }))).toThrow(
      'master, slaves, unavailable',
    );
  });

  test.each([
    ...[{ available: null }, { available: [] }, { available: { [a]: '1' } }, { available: 7 }],
    ...[{ unavailable: null }, { unavailable: [7] }],
  ])('a report with %j is refused', (more) => {
    const report = { available: { [a]: 1 }, unavailable: [b] };
    expect(decodeReport(path, JSON.stringify(report))).toEqual(report);
    expect(() => decodeReport(path, JSON.stringify({ ...report, ...more }))).toThrow(
      'available, unavailable',
    );
  });

  test('what is refused is shown, but not all of it', () => {
    const text = JSON.stringify('x'.repeat(500));
    expect(() => decodeNodes(path, text)).toThrow(JSON.stringify(text.slice(0, 200)));
  });
});

test('a position is a stream and how far it is', () => {
  const position = { stream: 'f', offset: 5 };
  expect(decodePosition(path, encodePosition(position))).toEqual(position);
  for (const more of [{ stream: 7 }, { offset: -1 }, { offset: '5' }]) {
    expect(() => decodePosition(path, JSON.stringify({ ...position, ...more }))).toThrow(
      'stream, offset',
    );
  }
});

describe('a request', () => {
  test.each<[FailoverRequest, string]>([
    [{ node: null, requestedBy: 'me' }, '{"node":null,"requestedBy":"me"}'],
    [
      { node: a, requestedBy: 'me', waitMs: 5, progress: '1 %' },
      '{"node":"a:1","requestedBy":"me","waitMs":5,"progress":"1 %"}',
    ],
    [
      { node: a, action: 'keep', requestedBy: 'me' },
      '{"action":"keep","target":"a:1","requestedBy":"me"}',
    ],
    [
      { node: a, action: 'discard', requestedBy: 'me', outcome: { done: false, error: 'no' } },
      '{"action":"discard","target":"a:1","requestedBy":"me","outcome":{"done":false,"error":"no"}}',
    ],
  ])('%j is %s', (request, text) => {
    expect(encodeRequest(request)).toBe(text);
    expect(decodeRequest(path, text)).toEqual(request);
  });

  test.each([
    '{"node":7,"requestedBy":"me"}',
    '{"requestedBy":"me"}',
    '{"node":"a:1"}',
    '{"node":"a:1","requestedBy":7}',
    // A request without a name, and an unknown action, are no failover.
    '{"action":"keep","target":null,"requestedBy":"me"}',
    '{"action":"forget","target":"a:1","requestedBy":"me"}',
  ])('%s is no request', (text) => {
    expect(() => decodeRequest(path, text)).toThrow('node, requestedBy');
  });

  test('what it may do without is left out where it is odd', () => {
    const text = '{"node":null,"requestedBy":"me","waitMs":-1,"progress":7}';
    expect(decodeRequest(path, text)).toEqual({ node: null, requestedBy: 'me' });
  });
});

describe('managers of the gem have moved the primary', () => {
  const named = (master: string | null, createdZxid: bigint) => ({
    record: { value: { ...plain, primary: a }, modifiedZxid: 5n },
    nodes: { value: { master, slaves: [], unavailable: [] }, createdZxid },
  });

  test('when nodes names another, or was made after the record was written', () => {
    expect(isMovedByGem(named(b, 5n))).toBe(true);
    expect(isMovedByGem(named(a, 6n))).toBe(true);
  });

  test('not when both were written together, nor when nodes names no primary', () => {
    expect(isMovedByGem(named(a, 5n))).toBe(false);
    expect(isMovedByGem(named(null, 6n))).toBe(false);
  });
});

test.each([
  ...([
    [0, '0.0'],
    [-0, '0.0'],
    [1, '1.0'],
    [-1, '-1.0'],
    [1.5, '1.5'],
  ] as const),
  ...([
    [1e-4, '0.0001'],
    [-1e-4, '-0.0001'],
    [0.000412, '0.000412'],
  ] as const),
  ...([
    [0.00009, '9.0e-05'],
    [0.000091, '9.1e-05'],
    [-0.000091, '-9.1e-05'],
  ] as const),
  ...([
    [999_999_999_999_999, '999999999999999.0'],
    [1e15, '1.0e+15'],
  ] as const),
  ...([
    [1.25e15, '1.25e+15'],
    [1e100, '1.0e+100'],
    [5e-324, '5.0e-324'],
  ] as const),
])('%d is written by Ruby as %s', (value, text) => {
  expect(rubyFloat(value)).toBe(text);
});
