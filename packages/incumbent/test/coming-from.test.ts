// Each page of docs/coming-from is for readers who come from one system. The file
// coming-from/<system>.json names the tests of its rows. Here the pages are held to these files, and
// the files to the tests.
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  anchorsOf,
  linksOf,
  readMatrix,
  readPage,
  readProgram,
  systemsWithMatrix,
  systemsWithPage,
  systemsWithProgram,
  testsIn,
} from './support/coming-from.ts';
import { expectToExist, namedOnce } from './support/named-tests.ts';

/** The sections whose tables have rows with an id. */
const tables = ['There and here', 'The client, there and here', 'What is better'];

const curatorBugs = [
  ...[45, 49, 171, 202, 498, 696].map((number) => `CURATOR-${number}`),
  'Curator 1',
  'Curator 2',
  'LB1',
];

const kazooBugs = [...numbered('kazoo ', 5), 'kazoo 606', 'KZB1', 'KZB2'];

/** The rows of each page, in order. */
const systems: Readonly<Record<string, readonly string[]>> = {
  'vimeo-leaderelection': [...numbered('V', 19), ...numbered('VB', 16)],
  'go-leaderelection': [...numbered('C', 23), ...numbered('CB', 7), 'CB9', 'CB10'],
  'zookeeper-recipe': [...numbered('Z', 7), ...numbered('ZB', 8), 'etcd3 176'],
  curator: [...numbered('L', 17), ...numbered('LC', 17), ...curatorBugs],
  kazoo: [...numbered('KZ', 10), ...numbered('KC', 16), ...kazooBugs],
  hadoop: [...numbered('H', 21), ...numbered('HB', 6)],
  mooon: [...numbered('M', 9), ...numbered('MB', 3)],
  'zookeeper-leader-election': [...numbered('W', 6), ...numbered('WB', 7)],
  zkelection: [...numbered('F', 4), ...numbered('F4.', 14), 'FB1', 'FB2', 'FB5', 'FB6'],
  'redis-failover': [...numbered('R', 14), ...numbered('RB', 9)],
  'zookeeper-cpp': [...numbered('P', 47), ...numbered('zookeeper-cpp ', 4)],
  'node-zookeeper-client': [...numbered('N', 17), ...numbered('NZC ', 15)],
  'zookeeper-native': [...numbered('ZN', 17), ...numbered('ZKN ', 10)],
};

function numbered(letters: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${letters}${index + 1}`);
}

describe.each(Object.entries(systems))('docs/coming-from/%s.md', (system, ids) => {
  const page = readPage(system);
  const rows = page.sections.filter(({ title }) => tables.includes(title)).flatMap((s) => s.rows);
  const matrix = readMatrix(system);

  it('has the sections of all pages, in their order', () => {
    const titles = page.sections.map(({ title }) => title);
    const optional = ['The same program', 'The client, there and here'];
    expect(titles.filter((title) => !optional.includes(title))).toEqual([
      'There and here',
      'What is better',
      'What will surprise you',
      'What is not there',
      'Moving step by step',
    ]);
    const order = ['The same program', 'There and here', 'The client, there and here'];
    const first = titles.filter((title) => order.includes(title));
    expect(first).toEqual(order.filter((title) => first.includes(title)));
    expect(titles.slice(0, first.length)).toEqual(first);
  });

  it('has every row once, in order', () => {
    expect(rows.map(([id]) => id)).toEqual(ids);
    for (const row of rows) {
      expect(row, row[0]).toHaveLength(3);
      expect(row, row[0]).not.toContain('');
    }
  });

  it('has the tests of every row, and of no other', () => {
    expect(Object.keys(matrix)).toEqual(ids);
    for (const [id, files] of Object.entries(matrix)) {
      expect(Object.keys(files), id).not.toEqual([]);
      for (const names of Object.values(files)) {
        expect(names, id).not.toEqual([]);
        expect(new Set(names).size, id).toBe(names.length);
      }
    }
  });

  it('says where its tests are named', () => {
    expect(page.text).toContain(`](../../packages/incumbent/test/coming-from/${system}.json)`);
  });

  it('shows a program that is type-checked', () => {
    const program = readProgram(system) ?? '';
    const blocks = [...page.text.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
    const ours = blocks.filter(([, language]) => language === 'ts').map(([, , code]) => code);
    for (const code of ours) expect(program).toContain(code);
    expect(ours.length > 0).toBe(program !== '');
    // Nobody checks those of other kinds: `js` is for no code of ours.
    expect(blocks.map(([, language]) => language)).not.toContain('js');
  });

  it('is in the overview', () => {
    expect(readPage('index').text).toContain(`](${system}.md)`);
  });
});

describe.each([...Object.keys(systems), 'index'])('docs/coming-from/%s.md', (system) => {
  it.each(linksOf(system))('links to what exists: %s', (_, { file, anchor }) => {
    expect(existsSync(file)).toBe(true);
    if (anchor !== undefined) expect(anchorsOf(file)).toContain(anchor);
  });
});

describe('docs/coming-from', () => {
  it('has a page and a file of tests for every system, and for no other', () => {
    const names = Object.keys(systems).sort();
    expect(systemsWithPage()).toEqual(names);
    expect(systemsWithMatrix()).toEqual(names);
    expect(names).toEqual(expect.arrayContaining([...systemsWithProgram()]));
  });

  it('has every known bug that is owed a test', () => {
    const known = Object.values(systems).flat();
    const owed = ['CB', 'HB', 'MB', 'WB', 'VB', 'RB'].flatMap((source, index) =>
      numbered(source, [7, 6, 3, 7, 16, 9][index]!),
    );
    for (const id of [...owed, 'CB9', 'CURATOR-202', 'CURATOR-498', 'etcd3 176']) {
      expect(known, id).toContain(id);
    }
  });

  const named = namedOnce(Object.keys(systems).flatMap((system) => testsIn(readMatrix(system))));
  it.each(named)('%s', (_, test) => expectToExist(test));
});
