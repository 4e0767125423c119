/** Pages whose tables name the test that shows each row. */
import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';

const root = new URL('../../../../', import.meta.url);

export interface Row {
  /** The heading above the table. */
  readonly section: string;
  readonly cells: readonly string[];
  readonly shownBy: string;
}

export interface NamedTest {
  readonly file: string;
  readonly name: string;
}

/** @param page below the repository */
export function rowsOf(page: string): readonly Row[] {
  const text = readFileSync(new URL(page, root), 'utf8');
  return text.split(/^## /m).flatMap((section) =>
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
}

/** The tests that a cell names: `file` "name", "name" · `file` "name". */
export function testsOf({ shownBy }: Row): readonly NamedTest[] {
  return [...shownBy.matchAll(/`([^`]+\.(?:ts|mjs))`((?:,? "[^"]+")+)/g)].flatMap(
    ([, file, names]) =>
      [...names!.matchAll(/"([^"]+)"/g)].map(([, name]) => ({ file: file!, name: name! })),
  );
}

/** Each test once, with a title for a test of ours. */
export function namedTests(rows: readonly Row[]): readonly (readonly [string, NamedTest])[] {
  return [
    ...new Map(
      rows.flatMap((row) => testsOf(row)).map((test) => [`${test.file}: ${test.name}`, test]),
    ),
  ];
}

/** Whatever looks like a file of tests was read as one. */
export function expectsTests(row: Row): void {
  expect(testsOf(row).length, row.cells[0]).toBeGreaterThan(0);
  const files = row.shownBy.match(/[\w/-]+(?:\.test)?\.(?:ts|mjs)\b/g) ?? [];
  expect(new Set(testsOf(row).map(({ file }) => file)), row.cells[0]).toEqual(new Set(files));
}

export function expectToExist({ file, name }: NamedTest): void {
  const [, other, rest] =
    /^(cli|zookeeper|zookeeper-testing|redis-failover)\/(.*)$/.exec(file) ?? [];
  const path = file.startsWith('servers/')
    ? file
    : `packages/${other ?? 'incumbent'}/${rest ?? file}`;
  const url = new URL(path, root);
  expect(existsSync(url), file).toBe(true);
  const source = readFileSync(url, 'utf8').replaceAll('\\`', '`').replaceAll("\\'", "'");
  const [before] = source.split(name);
  expect(source.includes(name), `${file} has no test named "${name}"`).toBe(true);
  // A title, not a comment: it stands in quotes.
  expect(before, name).toMatch(/['"`]$/);
  // What is not a file of tests itself is used by one.
  expect(file).toMatch(/\.test\.(?:ts|mjs)$|behaviour\/|^src\/testing\/election-scenarios\.ts$/);
}
