import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { figureOf } from '../src/figure.ts';
import type { ResultLine } from '../src/kept-results.ts';
import { keptResults } from '../src/kept-results.ts';
import { withResults } from '../src/page.ts';
import type { RunLine } from '../src/report.ts';
import { lineOf } from '../src/report.ts';
import { subjects } from '../src/subject.ts';

const empty = 'before\n<!-- results: begin -->\nold\n<!-- results: end -->\nafter\n';
const run: RunLine = {
  kind: 'machine',
  cpu: 'Z80',
  cores: 2,
  memoryGiB: 24,
  kernel: 'Linux 6.1',
  node: 'v20.20.2',
  fileSystem: 'ext4',
  commit: 'abc1234',
  startedAt: '2026-11-21T09:25:10.000Z',
  load: 0.2,
  rounds: 3,
  command: 'npm run bench -- library',
  stored: 'file store',
  notes: ['D = 15 s'],
};
const result: readonly ResultLine[] = [
  run,
  lineOf(figureOf('kill', 'takeover after `kill`', 'ms', [100, 120, 400], 300)),
  lineOf(figureOf('kill', 'floor: a process ends', 'ms', [1])),
  { kind: 'end', load: 0.4 } as ResultLine,
];

describe('the page of the benchmarks', () => {
  it('says the same as the kept results: `npm run bench -- page` writes it', () => {
    const page = new URL('../../docs/evidence/benchmarks.md', import.meta.url);
    const text = readFileSync(page, 'utf8');
    expect(withResults(text, keptResults)).toBe(text);
  });

  it('has a section for each subject, a chart before each table, and the machine below', () => {
    const text = withResults(empty, (subject) => (subject === 'library' ? result : undefined));
    expect(text).toMatch(/^before\n<!-- results: begin -->\n\n## /);
    expect(text).toMatch(/\n<!-- results: end -->\nafter\n$/);
    for (const subject of Object.keys(subjects)) expect(text).toContain(`{#${subject}}`);
    const [, json = ''] = /<!-- chart (.*) -->/.exec(text) ?? [];
    expect(JSON.parse(json)).toEqual({
      title: 'kill, ms',
      unit: 'ms',
      columns: ['median'],
      rows: ['takeover after kill', 'floor: a process ends'],
      others: ['floor: a process ends'],
      scale: 'log',
    });
    expect(text.indexOf('<!-- chart')).toBeLessThan(text.indexOf('| takeover after kill |'));
    expect(text).toContain('`npm run bench -- library --save --rounds 3`');
    expect(text).toContain('- D = 15 s\n- load at the end: 0.40\n');
    expect(text).toContain('`npm run bench -- stores --save` measures and keeps them.');
  });

  it('is refused without the place for the results', () => {
    expect(() => withResults('nothing', () => undefined)).toThrow('has no "<!-- results: begin');
  });
});
