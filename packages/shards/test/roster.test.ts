import { describe, expect, it } from 'vitest';
import { nobody } from '../src/assign.ts';
import type { RosterPart } from '../src/roster.ts';
import { mostNumbers, namesInPart, Roster } from '../src/roster.ts';

const open = () => new Roster({ count: 1, digest: 2n }, () => []);
const part = (names: readonly string[], retired: readonly number[] = []): RosterPart => ({
  names,
  retired: new Set(retired),
});

/** Writes the changes, and returns them. */
function become(roster: Roster, wanted: readonly string[], numbers = 0) {
  const changes = roster.changes([...wanted].sort(), numbers);
  for (const [index, changed] of changes) roster.learn(index, changed);
  return changes;
}

describe('the names of shards', () => {
  it('keep their numbers, whatever becomes of the list', () => {
    const roster = open();
    become(roster, ['b', 'c']);
    become(roster, ['a', 'c']);
    expect(['a', 'b', 'c'].map((name) => roster.numberOf(name))).toEqual([2, 0, 1]);
    expect(roster.all()).toEqual(['c', 'a']);
    expect([0, 1, 2, 3].map((number) => roster.isListed(number))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    become(roster, ['a', 'b']);
    expect(roster.numberOf('b')).toBe(0);
    expect(roster.nameOf(1)).toBe('c');
    expect(roster.isListed(1)).toBe(false);
  });

  it('are written in parts, and only those that change', () => {
    const roster = open();
    const names = Array.from(
      { length: namesInPart + 1 },
      (_, i) => `n${String(i).padStart(4, '0')}`,
    );
    expect([...become(roster, names).keys()]).toEqual([0, 1]);
    expect(become(roster, names).size).toBe(0);
    expect([...become(roster, [...names, 'z']).keys()]).toEqual([1]);
    expect([...become(roster, names.slice(1)).keys()]).toEqual([0, 1]);
    expect(roster.digest % 2n).toBe(1n);
  });

  it('get no number that was given out and whose name is lost', () => {
    const roster = open();
    roster.learn(0, part(['a']));
    become(roster, ['a', 'c'], 3);
    expect(roster.numberOf('c')).toBe(3);
    expect(roster.nameOf(1)).toBeUndefined();
    expect(roster.isListed(1)).toBe(false);
  });

  it('are written again where a record was set back', () => {
    const roster = open();
    become(roster, ['a', 'b']);
    roster.learn(0, part(['a']));
    expect(become(roster, ['a', 'b']).get(0)).toEqual(part(['a', 'b']));
    expect(roster.numberOf('b')).toBe(1);
  });

  it('count once, although another process has given them a second number', () => {
    const roster = open();
    become(roster, ['a', 'b']);
    roster.learn(0, part(['a', '', 'b']));
    expect(roster.all()).toHaveLength(2);
    become(roster, ['a', 'b']);
    const listed = [0, 1, 2].filter((number) => roster.isListed(number));
    expect(listed).toHaveLength(2);
    expect(listed).toContain(roster.numberOf('b'));
  });

  it('are not known before they were read', () => {
    const roster = new Roster({ count: 2, digest: 3n }, ['a', 'b']);
    expect(roster.numberOf('a')).toBe(nobody);
    expect(roster.all()).toEqual(['a', 'b']);
    expect(() => roster.numberOf('c')).toThrow('there is no shard "c" in the list of 2');
  });

  it('are bounded in the life of a set', () => {
    expect(() => open().changes(['a'], mostNumbers)).toThrow('at most 1048576 are possible');
  });
});
