import { describe, expect, it } from 'vitest';
import { figureOf } from '../src/figure.ts';
import type { Machine } from '../src/machine.ts';
import { loadWarning } from '../src/machine.ts';
import type { Line, RunLine } from '../src/report.ts';
import { formats, lineOf } from '../src/report.ts';

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
const run: RunLine = {
  kind: 'machine',
  ...machine,
  rounds: 3,
  command: 'npm run bench -- library',
  stored: 'file store',
  notes: [],
};
const figures = [
  figureOf('kill', 'takeover', 'ms', [100, 120, 400], 300),
  figureOf('kill', 'floor', 'ms', [50]),
].map(lineOf);
const end: Line = { kind: 'end', load: 1.5 };

describe('the report', () => {
  it('warns when others are at work on the machine', () => {
    expect(loadWarning({ ...machine, load: 1 })).toBeUndefined();
    expect(loadWarning({ ...machine, load: 1.01 })).toBe(
      'the load is 1.01 on 2 cores, above 0.5 a core. ' +
        'Others are at work: these figures are worth little.',
    );
    const busy = { ...run, load: 3 };
    expect(formats.text([busy])).toMatch(/\nWarning: the load is 3\.00/);
    expect(formats.markdown([busy])).toMatch(/\n- Warning: the load is 3\.00/);
  });

  it('for people has a line for each figure', () => {
    const noted: Line = { ...run, notes: ['ZooKeeper 3.8.0'] };
    const skipped: Line = { kind: 'skipped', benchmark: 'idle', message: 'it needs /proc' };
    expect(formats.text([noted, ...figures, skipped, end])).toBe(
      [
        hardware,
        moment,
        'ZooKeeper 3.8.0',
        'rounds: 3',
        'kill        takeover: 120 ms (p95 372, 100 to 400, n 3)  goal ≤ 300 ms: met by 180 ms',
        'kill        floor: 50 ms (n 1)',
        'idle        skipped: it needs /proc',
        'load at the end: 1.50',
        '',
      ].join('\n'),
    );
  });

  it('for programs has an object for each line', () => {
    const wrong: Line = { kind: 'wrong', benchmark: 'idle', message: 'two leaders' };
    const result = [run, ...figures, wrong, end];
    const objects = formats
      .json(result)
      .trimEnd()
      .split('\n')
      .map((each) => JSON.parse(each));
    expect(objects).toEqual(result);
    expect(objects[1]).toMatchObject({ kind: 'figure', met: true });
    expect(objects[2]).not.toHaveProperty('met');
  });

  it('for a page is a table', () => {
    const failed: Line = { kind: 'failed', benchmark: 'idle', message: 'a | b' };
    expect(formats.markdown([run, ...figures, failed, end])).toBe(
      [
        `- ${hardware}`,
        `- ${moment}`,
        '- `npm run bench -- library --markdown --rounds 3`',
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
