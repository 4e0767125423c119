// docs/evidence/zookeeper-features.md names the tests of each row of its tables. This test checks that.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../../../', import.meta.url);
const page = readFileSync(new URL('docs/evidence/zookeeper-features.md', root), 'utf8');
const sections = page.split(/^#{2,3} /m);

interface Test {
  readonly file: string;
  readonly name: string;
}

/** The cells of each row of the tables. */
function rowsOf(section: string): readonly (readonly string[])[] {
  return textOf(section)
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .slice(1) // the titles of the columns
    .map((line) =>
      line
        .slice(2, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
}

/** The items of a list of tests: `- **id**`, and below it each `  - test`. */
function testsOf(section: string): ReadonlyMap<string, readonly Test[]> {
  const items = textOf(section).matchAll(/^- \*\*(.+)\*\*$((?:\n {2,}\S.*)+)/gm);
  return new Map([...items].map(([, id, tests]) => [id!, named(tests!)]));
}

/** `file` "name", "name" in each line. */
function named(lines: string): readonly Test[] {
  const text = lines.replaceAll(/\s+/g, ' ');
  return [...text.matchAll(/`([^`]+\.(?:ts|mjs))`((?:,? "[^"]+")+)/g)].flatMap(([, file, names]) =>
    [...names!.matchAll(/"([^"]+)"/g)].map(([, name]) => ({ file: file!, name: name! })),
  );
}

function textOf(section: string): string {
  return sections.find((text) => text.startsWith(section))!;
}

function locate(file: string): URL {
  if (file.startsWith('scripts/')) return new URL(file, root);
  if (file.startsWith('zookeeper-testing/')) return new URL(`packages/${file}`, root);
  const folder = file.startsWith('test/') ? '' : 'test-integration/';
  return new URL(`packages/zookeeper/${folder}${file}`, root);
}

function idsOf(section: string): string[] {
  return rowsOf(section).map(([id]) => id!);
}

const features = rowsOf('Features');
const ofFeatures = testsOf('Tests of the features');
const ofOptions = testsOf('Tests of the options');
const ofDefects = testsOf('Tests of the known defects');
const all = [ofFeatures, ofOptions, ofDefects].flatMap((tests) => [...tests.values()].flat());
const unique = [...new Map(all.map((test) => [`${test.file}: ${test.name}`, test])).entries()];

describe('docs/evidence/zookeeper-features.md', () => {
  it('has every known defect, and a test for each but those that are not the client’s', () => {
    const ofNode = idsOf('node-zookeeper-client');
    const ofNative = idsOf('zookeeper 7.3.0');
    const others = idsOf('Others');
    expect(ofNode).toEqual(Array.from({ length: 15 }, (_, i) => `NZC ${i + 1}`));
    expect(ofNative).toEqual(Array.from({ length: 10 }, (_, i) => `ZKN ${i + 1}`));
    for (const other of ['kazoo', 'go-zookeeper', 'Curator', 'Java', 'zookeeper-cpp', 'server']) {
      expect(others).toContain(`${other} 1`);
    }
    const defects = [...ofNode, ...ofNative, ...others];
    expect(defects.filter((id) => !ofDefects.has(id))).toEqual(['kazoo 5']);
    expect([...ofDefects.keys()].filter((id) => !defects.includes(id))).toEqual([]);
  });

  it('says of every feature whether it is there', () => {
    expect(features.length).toBeGreaterThanOrEqual(46);
    for (const [name, isThere] of features) {
      expect(isThere, name).toBe(ofFeatures.has(name!) ? '+' : '–');
    }
    const names = features.map(([name]) => name);
    expect(names.filter((name) => !ofFeatures.has(name!))).toEqual(['SASL GSSAPI (Kerberos)']);
    expect([...ofFeatures.keys()].filter((name) => !names.includes(name))).toEqual([]);
  });

  it('has every option', () => {
    const options = readFileSync(new URL('packages/zookeeper/src/options.ts', root), 'utf8');
    const [declaration] = /^export interface ClientOptions \{.*?^\}/ms.exec(options)!;
    const names = [...declaration.matchAll(/^ {2}readonly (\w+)\?:/gm)].map(([, name]) => name);
    expect([...ofOptions.keys()].sort()).toEqual(names.map((name) => `\`${name}\``).sort());
    expect(names.length).toBeGreaterThan(10);
  });

  it('reads every line that names a test', () => {
    for (const tests of [ofFeatures, ofOptions, ofDefects]) {
      for (const [id, shown] of tests) expect(shown.length, id).toBeGreaterThan(0);
    }
    expect(all).toHaveLength(page.match(/(?<=^ {2}- `[^`]+`[^`]*)"[^"]+"/gm)!.length);
  });

  it.each(unique)('%s', (_, { file, name }) => {
    const url = locate(file);
    expect(existsSync(url), file).toBe(true);
    const source = readFileSync(url, 'utf8');
    const [before] = source.split(name);
    expect(source.includes(name), `${file} has no test named "${name}"`).toBe(true);
    // The name is a title, not a comment: it is in quotes, perhaps behind a placeholder.
    expect(before, name).toMatch(/['"`](?:\$\{\w+\}, )?$/);
    // A file that is no test file is used by one.
    expect(file).toMatch(/\.test\.ts$|^behaviour\/|^scripts\//);
  });
});
