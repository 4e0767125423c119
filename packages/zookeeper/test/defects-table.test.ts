// docs/evidence/zookeeper-features.md names the test that shows each line. Here it is held to that.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../../../', import.meta.url);
const page = readFileSync(new URL('docs/evidence/zookeeper-features.md', root), 'utf8');

interface Row {
  readonly section: string;
  readonly cells: readonly string[];
  readonly shownBy: string;
}

const rows: readonly Row[] = page.split(/^#{2,3} /m).flatMap((section) =>
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
  if (file.startsWith('scripts/')) return new URL(file, root);
  if (file.startsWith('zookeeper-testing/')) return new URL(`packages/${file}`, root);
  const folder = file.startsWith('test/') ? '' : 'test-integration/';
  return new URL(`packages/zookeeper/${folder}${file}`, root);
}

function idsOf(section: string): string[] {
  return rows.filter((row) => row.section.startsWith(section)).map(({ cells }) => cells[0]!);
}

const named = rows.flatMap((row) => testsOf(row));
const unique = [...new Map(named.map((test) => [`${test.file}: ${test.name}`, test])).entries()];

describe('docs/evidence/zookeeper-features.md', () => {
  it('has every known defect, and a test for each but those that are not the client’s', () => {
    expect(idsOf('node-zookeeper-client')).toEqual(
      Array.from({ length: 15 }, (_, i) => `NZC ${i + 1}`),
    );
    expect(idsOf('zookeeper 7.3.0')).toEqual(Array.from({ length: 10 }, (_, i) => `ZKN ${i + 1}`));
    for (const other of ['kazoo', 'go-zookeeper', 'Curator', 'Java', 'zookeeper-cpp', 'server']) {
      expect(idsOf('Others')).toContain(`${other} 1`);
    }
    const untested = rows.filter((row) => testsOf(row).length === 0).map(({ cells }) => cells[0]);
    expect(untested).toEqual(['kazoo 5', 'SASL GSSAPI (Kerberos)']);
  });

  it('says of every feature whether it is there', () => {
    const features = rows.filter(({ section }) => section === 'Features');
    expect(features.length).toBeGreaterThanOrEqual(46);
    for (const row of features) {
      expect(row.cells[1], row.cells[0]).toBe(testsOf(row).length > 0 ? '+' : '–');
    }
  });

  it('has every option', () => {
    const options = readFileSync(new URL('packages/zookeeper/src/options.ts', root), 'utf8');
    const [declaration] = /^export interface ClientOptions \{.*?^\}/ms.exec(options)!;
    const names = [...declaration.matchAll(/^ {2}readonly (\w+)\?:/gm)].map(([, name]) => name);
    expect(idsOf('Options').sort()).toEqual(names.map((name) => `\`${name}\``).sort());
    expect(names.length).toBeGreaterThan(10);
  });

  it.each(unique)('%s', (_, { file, name }) => {
    const url = locate(file);
    expect(existsSync(url), file).toBe(true);
    const source = readFileSync(url, 'utf8');
    const [before] = source.split(name);
    expect(source.includes(name), `${file} has no test named "${name}"`).toBe(true);
    // A title, not a comment: it stands in quotes, perhaps behind what is filled in.
    expect(before, name).toMatch(/['"`](?:\$\{\w+\}, )?$/);
    // What is not a file of tests itself is used by one.
    expect(file).toMatch(/\.test\.ts$|^behaviour\/|^scripts\//);
  });
});
