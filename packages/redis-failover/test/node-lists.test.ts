import { describe, expect, it } from 'vitest';
import type { Report } from '../src/layout.ts';
import { sayShortList, shortLists } from '../src/manager/node-lists.ts';

const report = (available: readonly string[], unavailable: readonly string[] = []): Report => ({
  available: Object.fromEntries(available.map((node) => [node, 0.001])),
  unavailable,
});

describe('the node lists of the managers', () => {
  it('are the same, whatever each of them reaches', () => {
    const reports = new Map([
      ['one', report(['a:1', 'b:1'])],
      ['two', report(['b:1'], ['a:1'])],
    ]);
    expect(shortLists(reports)).toEqual([]);
  });

  it('are different: the manager is named, and what it does not watch (B7)', () => {
    const reports = new Map([
      ['one', report(['a:1', 'b:1'], ['c:1'])],
      ['two', report(['a:1', 'b:1'])],
      // Another spelling counts as another node.
      ['three', report(['a:1', 'b:1', 'C:1'])],
    ]);
    expect(shortLists(reports)).toEqual([
      { manager: 'one', lacks: ['C:1'] },
      { manager: 'two', lacks: ['C:1', 'c:1'] },
      { manager: 'three', lacks: ['c:1'] },
    ]);
    expect(shortLists(reports).map(sayShortList)[2]).toContain(
      'the manager three does not watch c:1',
    );
  });

  it('of a manager that has looked at nothing yet is not known', () => {
    const reports = new Map([
      ['one', report(['a:1'])],
      ['two', report([])],
    ]);
    expect(shortLists(reports)).toEqual([]);
  });
});
