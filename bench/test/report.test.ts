import { describe, expect, it } from 'vitest';
import { figureOf } from '../src/figure.ts';
import type { Machine } from '../src/machine.ts';
import { loadWarning } from '../src/machine.ts';
import type { Run } from '../src/report.ts';
import { reports } from '../src/report.ts';

const machine: Machine = {
  cpu: 'Z80',
  cores: 2,
  memoryGiB: 24,
  kernel: 'Linux 6.1',
  node: 'v20.20.2',
  fileSystem: 'ext4',
  commit: 'abc1234',
  startedAt: '2026-11-21T09:25:10.000Z',
  load: 0.2,
};
const hardware = '2 × Z80, 24 GiB, Linux 6.1, Node v20.20.2, file store on ext4';
const moment = 'commit abc1234, 2026-11-21 09:25 UTC, load 0.20';
const run: Run = {
  machine,
  rounds: 3,
  command: 'npm run bench',
  stored: 'file store',
  notes: [],
};
const figures = [
  figureOf('kill', 'takeover', 'ms', [100, 120, 400], 300),
  figureOf('kill', 'floor', 'ms', [50]),
];

describe('the report', () => {
  it('warns when others are at work on the machine', () => {
    expect(loadWarning({ ...machine, load: 1 })).toBeUndefined();
    expect(loadWarning({ ...machine, load: 1.01 })).toBe(
      'the load is 1.01 on 2 cores, above 0.5 a core. ' +
        'Others are at work: these figures are worth little.',
    );
    const busy = { ...machine, load: 3 };
    expect(reports.text.start({ ...run, machine: busy })).toMatch(/\nWarning: the load is 3\.00/);
    expect(reports.markdown.start({ ...run, machine: busy })).toMatch(
      /\n- Warning: the load is 3\.00/,
    );
  });

  it('for people has a line for each figure', () => {
    expect(reports.text.start(run)).toBe(`${hardware}\n${moment}\nrounds: 3\n`);
    expect(reports.text.start({ ...run, notes: ['ZooKeeper 3.8.0'] })).toBe(
      `${hardware}\n${moment}\nZooKeeper 3.8.0\nrounds: 3\n`,
    );
    expect(reports.text.end(1.5)).toBe('load at the end: 1.50\n');
    expect(reports.text.figures(figures)).toBe(
      'kill        takeover: 120 ms (p95 372, 100 to 400, n 3)  goal ≤ 300 ms: met by 180 ms\n' +
        'kill        floor: 50 ms (n 1)\n',
    );
    expect(reports.text.trouble('idle', 'skipped', 'it needs /proc')).toBe(
      'idle        skipped: it needs /proc\n',
    );
  });

  it('for programs has an object for each line', () => {
    const output =
      reports.json.start(run) +
      reports.json.figures(figures) +
      reports.json.trouble('idle', 'wrong', 'two leaders') +
      reports.json.end(1.5);
    expect(
      output
        .trimEnd()
        .split('\n')
        .map((each) => JSON.parse(each)),
    ).toEqual([
      { kind: 'machine', rounds: 3, notes: [], ...machine },
      { kind: 'figure', met: true, ...figures[0] },
      { kind: 'figure', ...figures[1] },
      { kind: 'wrong', benchmark: 'idle', message: 'two leaders' },
      { kind: 'end', load: 1.5 },
    ]);
  });

  it('for the documentation is a table', () => {
    const output =
      reports.markdown.start(run) +
      reports.markdown.figures(figures) +
      reports.markdown.trouble('idle', 'failed', 'a | b') +
      reports.markdown.end(1.5);
    expect(output).toBe(
      [
        `- ${hardware}`,
        `- ${moment}`,
        '- `npm run bench -- --markdown --rounds 3`',
        '',
        '| | median | p95 | min to max | n | goal | |',
        '| --- | --: | --: | --- | --: | --: | --- |',
        '| takeover | **120 ms** | 372 | 100 to 400 | 3 | ≤ 300 ms | met by 180 ms |',
        '| floor | 50 ms | 50 | 50 to 50 | 1 |  |  |',
        '| idle: failed: a \\| b | | | | | | |',
        '',
        'load at the end: 1.50',
        '',
      ].join('\n'),
    );
  });
});
