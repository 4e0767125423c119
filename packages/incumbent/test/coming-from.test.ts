// docs/coming-from.md names the test that shows each line. Here it is held to that.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../../../', import.meta.url);
const page = readFileSync(new URL('docs/coming-from.md', root), 'utf8');

interface Row {
  readonly section: string;
  readonly cells: readonly string[];
  readonly shownBy: string;
}

const rows: readonly Row[] = page.split(/^## /m).flatMap((section) =>
  section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .slice(1) // the titles of the columns
    .map((line) => {
      const cells = line
        .slice(2, -1)
        .split('|')
        .map((cell) => cell.trim());
      return { section: section.split('\n')[0]!, cells, shownBy: cells.at(-1)! };
    }),
);

/** The tests that a cell names: `file` "name", "name" · `file` "name". */
function testsOf({ shownBy }: Row): { file: string; name: string }[] {
  return [...shownBy.matchAll(/`([^`]+\.(?:ts|mjs))`((?:,? "[^"]+")+)/g)].flatMap(
    ([, file, names]) =>
      [...names!.matchAll(/"([^"]+)"/g)].map(([, name]) => ({ file: file!, name: name! })),
  );
}

function locate(file: string): URL {
  const [, other, rest] = /^(cli|zookeeper|redis-failover)\/(.*)$/.exec(file) ?? [];
  return new URL(`packages/${other ?? 'incumbent'}/${rest ?? file}`, root);
}

function idsOf(section: string): string[] {
  return rows.filter((row) => row.section === section).map(({ cells }) => cells[0]!);
}

function numbered(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
}

const unique = [
  ...new Map(
    rows.flatMap((row) => testsOf(row)).map((test) => [`${test.file}: ${test.name}`, test]),
  ),
];

describe('docs/coming-from.md', () => {
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
      expect(testsOf(row).length, row.cells[0]).toBeGreaterThan(0);
      expect(row.cells, row.cells[0]).toHaveLength(row.section === 'Known bugs' ? 3 : 4);
      // Whatever looks like a file of tests was read as one.
      const files = row.shownBy.match(/[\w/-]+(?:\.test)?\.(?:ts|mjs)\b/g) ?? [];
      expect(new Set(testsOf(row).map(({ file }) => file)), row.cells[0]).toEqual(new Set(files));
    }
  });

  it.each(unique)('%s', (_, { file, name }) => {
    const url = locate(file);
    expect(existsSync(url), file).toBe(true);
    const source = readFileSync(url, 'utf8').replaceAll('\\`', '`');
    const [before] = source.split(name);
    expect(source.includes(name), `${file} has no test named "${name}"`).toBe(true);
    // A title, not a comment: it stands in quotes.
    expect(before, name).toMatch(/['"`]$/);
    // What is not a file of tests itself is used by one.
    expect(file).toMatch(/\.test\.(?:ts|mjs)$|behaviour\/|^src\/testing\/election-scenarios\.ts$/);
  });
});
