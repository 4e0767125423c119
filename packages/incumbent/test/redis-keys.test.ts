import { describe, expect, test } from 'vitest';
import { channelOf, keyBeside, keysOf } from '../src/backends/redis/keys.ts';

/** The part of a key that decides its node, as the specification of clusters has it. */
function hashedPart(key: string): string {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

const names = [
  'billing',
  'a/b',
  'x}',
  '{x',
  '}',
  '{}',
  '{a}b',
  '%7D',
  'zoë 東京 🦊',
  'a:candidates',
];

describe('the keys of an election', () => {
  test.each(names)('are on one node: %s', (name) => {
    for (const prefix of ['incumbent:', '', '{all}:', 'odd{']) {
      const { record, candidates } = keysOf(prefix, name);
      expect(hashedPart(record)).toBe(hashedPart(candidates));
      expect(hashedPart(record)).not.toBe(record);
    }
  });

  test('are those of no other election', () => {
    const all = names.flatMap((name) => Object.values(keysOf('incumbent:', name)));
    expect(new Set(all).size).toBe(all.length);
    expect(all).not.toContain(channelOf('incumbent:'));
  });

  test('read as people expect', () => {
    expect(keysOf('incumbent:', 'billing').record).toBe('incumbent:{billing}');
  });
});

describe('a key beside another one', () => {
  test.each([
    ['plain', '{plain}:fence'],
    ['{tag}:a', '{tag}:a:fence'],
    ['a{tag}b{other}', 'a{tag}b{other}:fence'],
    ['open{', '{open{}:fence'],
    ['{}empty', undefined],
    ['close}', undefined],
    ['', undefined],
  ])('is on the same node: %s', (key, expected) => {
    const beside = keyBeside(key, ':fence');
    expect(beside).toBe(expected);
    if (beside !== undefined) expect(hashedPart(beside)).toBe(hashedPart(key));
  });
});
