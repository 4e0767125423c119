// docs/coming-from/index.md names the test that shows each line. Here it is held to that.
import { describe, expect, it } from 'vitest';
import { expectsTests, expectToExist, namedTests, rowsOf } from './support/named-tests.ts';

const rows = rowsOf('docs/coming-from/index.md');

function idsOf(section: string): string[] {
  return rows.filter((row) => row.section === section).map(({ cells }) => cells[0]!);
}

function numbered(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
}

describe('docs/coming-from/index.md', () => {
  it.each([
    ['vimeo/leaderelection', 'V', 19],
    ['go-leaderelection', 'C', 23],
    ['The recipes', 'Z', 7],
    ['ActiveStandbyElector and ZKFC', 'H', 21],
    ['CZookeeperHelper', 'M', 9],
    ['A program that runs while it leads', 'W', 6],
    ['zkElection', 'F', 4],
    ['redis_failover', 'R', 14],
  ])('%s: every row once, in order', (section, letter, count) => {
    expect(idsOf(section)).toEqual(numbered(letter, count));
  });

  it('every known bug that is owed a test is there', () => {
    const known = rows
      .filter(({ section }) => section === 'Known bugs')
      .flatMap(({ cells }) => cells[1]!.split(', '));
    const owed = ['CB', 'HB', 'MB', 'WB', 'VB', 'RB'].flatMap((source, index) =>
      numbered(source, [7, 6, 3, 7, 16, 9][index]!),
    );
    for (const id of [...owed, 'CB9', 'CURATOR-202', 'CURATOR-498', 'etcd3 176']) {
      expect(known, id).toContain(id);
    }
  });

  it('every row names a test, and is a row of its table', () => {
    for (const row of rows) {
      expectsTests(row);
      expect(row.cells, row.cells[0]).toHaveLength(row.section === 'Known bugs' ? 3 : 4);
    }
  });

  it.each(namedTests(rows))('%s', (_, test) => expectToExist(test));
});
