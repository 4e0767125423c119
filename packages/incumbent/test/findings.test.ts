// docs/evidence/findings.md names the test that shows each finding. Here it is held to that.
import { describe, expect, it } from 'vitest';
import { expectsTests, expectToExist, namedTests, rowsOf } from './support/named-tests.ts';

const rows = rowsOf('docs/evidence/findings.md');

describe('docs/evidence/findings.md', () => {
  it('has a finding, its fault and a test in every row', () => {
    for (const row of rows) {
      expect(row.cells, row.cells[0]).toHaveLength(3);
      expectsTests(row);
    }
  });

  it.each(namedTests(rows))('%s', (_, test) => expectToExist(test));
});
