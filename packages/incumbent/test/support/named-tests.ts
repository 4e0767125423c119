/** Pages whose tables or lists name the tests that show each row or item. */
import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';

const root = new URL('../../../../', import.meta.url);

export interface Row {
  /** The heading above the table or the list. */
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

/**
 * The items of the page's lists: `- **id.** text`, and below each the tests that show it, `  - test`.
 * The cells are the id, the text and the tests.
 *
 * @param page below the repository
 */
export function itemsOf(page: string): readonly Row[] {
  const text = readFileSync(new URL(page, root), 'utf8');
  return text.split(/^## /m).flatMap((section) =>
    [...section.matchAll(/^- \*\*([^*]+)\.\*\* (.*(?:\n {2}[^ -].*)*)((?:\n {2,}\S.*)*)/gm)].map(
      ([, id, said, tests]) => {
        const lines = tests!
          .trim()
          .replace(/^- /, '')
          .split(/\n {2}- /);
        const shownBy = lines.map((line) => line.replaceAll(/\s+/g, ' ')).join(' · ');
        return { section: section.split('\n')[0]!, cells: [id!, said!, shownBy], shownBy };
      },
    ),
  );
}

/** The tests that a cell names: `file` "name", "name" · `file` "name". */
export function testsOf({ shownBy }: Row): readonly NamedTest[] {
  return [...shownBy.matchAll(/`([^`]+\.(?:ts|mjs))`((?:,? "[^"]+")+)/g)].flatMap(
    ([, file, names]) =>
      [...names!.matchAll(/"([^"]+)"/g)].map(([, name]) => ({ file: file!, name: name! })),
  );
}

/** Each test that the rows name, once, with a title for a test of ours. */
export function namedTests(rows: readonly Row[]): readonly (readonly [string, NamedTest])[] {
  return namedOnce(rows.flatMap((row) => testsOf(row)));
}

export function namedOnce(tests: readonly NamedTest[]): readonly (readonly [string, NamedTest])[] {
  return [...new Map(tests.map((test) => [`${test.file}: ${test.name}`, test]))];
}

/** Every text that looks like a file of tests was read as one. */
export function expectsTests(row: Row): void {
  expect(testsOf(row).length, row.cells[0]).toBeGreaterThan(0);
  const files = row.shownBy.match(/[\w/-]+(?:\.test)?\.(?:ts|mjs)\b/g) ?? [];
  expect(new Set(testsOf(row).map(({ file }) => file)), row.cells[0]).toEqual(new Set(files));
}

export function expectToExist({ file, name }: NamedTest): void {
  const [, other, rest] =
    /^(cli|zookeeper|zookeeper-testing|redis-failover|shards)\/(.*)$/.exec(file) ?? [];
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
  // A file that is no file of tests itself is used by one.
  expect(file).toMatch(/\.test\.(?:ts|mjs)$|behaviour\/|^src\/testing\/election-scenarios\.ts$/);
}
