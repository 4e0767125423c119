// docs/evidence/findings.md names the tests that show each finding. Here it is held to that.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { expectsTests, expectToExist, itemsOf, namedTests } from './support/named-tests.ts';

const items = itemsOf('docs/evidence/findings.md');

describe('docs/evidence/findings.md', () => {
  it('has a finding, what went wrong and a test in every item', () => {
    expect(items.length).toBeGreaterThanOrEqual(50);
    for (const item of items) {
      for (const cell of item.cells) expect(cell, item.cells[0]).not.toBe('');
      expectsTests(item);
    }
  });

  it('reads every line that names a test', () => {
    const page = new URL('../../../docs/evidence/findings.md', import.meta.url);
    const lines = readFileSync(page, 'utf8').match(/^\s+- `/gm);
    const read = items.flatMap(({ shownBy }) => shownBy.split(' · '));
    expect(read).toHaveLength(lines!.length);
  });

  it.each(namedTests(items))('%s', (_, test) => expectToExist(test));
});
