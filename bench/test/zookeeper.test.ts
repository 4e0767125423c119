import { describe, expect, it } from 'vitest';
import type { Goal } from '../src/zookeeper/goals.ts';
import { goals, goalText, judge, verdictText } from '../src/zookeeper/goals.ts';
import type { MetricId } from '../src/zookeeper/metrics.ts';
import { metrics } from '../src/zookeeper/metrics.ts';
import { formats, resultOf } from '../src/zookeeper/report.ts';
import { Results } from '../src/zookeeper/results.ts';

const besideRaw: Goal = {
  metric: 'get100Cpu',
  bound: 'at most',
  limit: 1.4,
  beside: { column: 'raw' },
};

describe('a goal of the ZooKeeper client', () => {
  it('beside a peer is judged by the median of the ratios of each round', () => {
    const results = new Results();
    // The second round was slow for both: the medians, 30 and 10, would say 3.
    for (const [round, ours, raw] of [
      [0, 10, 10],
      [1, 300, 300],
      [2, 30, 10],
    ] as const) {
      results.add('get100Cpu', 'ours', round, ours);
      results.add('get100Cpu', 'raw', round, raw);
    }
    expect(judge(besideRaw, results)).toEqual({ goal: besideRaw, value: 1, met: true });
  });

  it('ignores rounds in which one side is missing, and is not judged without any', () => {
    const results = new Results();
    results.add('get100Cpu', 'ours', 0, 30);
    results.add('get100Cpu', 'raw', 1, 10);
    expect(judge(besideRaw, results)).toBeUndefined();
    expect(verdictText({ value: null, met: null })).toBe('not measured');
    results.add('get100Cpu', 'raw', 0, 20);
    expect(judge(besideRaw, results)).toMatchObject({ value: 1.5, met: false });
  });

  it('may be an amount, a least, or beside another figure of ours', () => {
    const results = new Results();
    const bytes: Goal = { metric: 'watchBytes', bound: 'at most', limit: 470 };
    const noDrop: Goal = {
      metric: 'get1000Rate',
      bound: 'at least',
      limit: 1,
      beside: { column: 'ours', metric: 'get100Rate' },
    };
    results.add('watchBytes', 'ours', 0, 470);
    results.add('get100Rate', 'ours', 0, 100);
    results.add('get1000Rate', 'ours', 0, 90);
    expect(judge(bytes, results)?.met).toBe(true);
    expect(judge(noDrop, results)).toMatchObject({ value: 0.9, met: false });
  });

  it('is shown with its limit, its value and whether it is met', () => {
    expect(goalText(besideRaw)).toBe('≤ 1.40 × raw');
    expect(verdictText({ ...besideRaw, value: 1.5, met: false })).toBe('1.50 ×, MISSED');
    expect(goalText({ metric: 'outageP50', bound: 'at most', limit: 200 })).toBe('≤ 200 ms');
    expect(goalText({ metric: 'refusedAttempts', bound: 'at most', limit: 10 })).toBe('≤ 10');
  });
});

describe('the report of the ZooKeeper client', () => {
  const run = {
    cpu: 'Z80',
    cores: 2,
    memoryGiB: 24,
    kernel: 'Linux 6.1',
    node: 'v20.20.2',
    fileSystem: 'ext4',
    commit: 'abc1234',
    startedAt: '2026-11-21T09:25:10.000Z',
    load: 0.2,
    command: 'npm run bench -- zookeeper',
    server: '3.8.0',
    rounds: 1,
    versions: { NZC: 'node-zookeeper-client 1.1.3' },
    absent: { kazoo: 'there is no Python with kazoo' },
    loadAtEnd: 0.3,
    seconds: 12,
  };
  const results = new Results();
  results.add('get100Cpu', 'ours', 0, 30);
  results.add('get100Cpu', 'raw', 0, 20);
  const trouble = { benchmark: 'get', column: 'native', message: 'no answer\nmore' } as const;

  it('says where, when and how it was measured, and which contenders are absent', () => {
    const text = formats.text(resultOf(run, results, [trouble]));
    expect(text).toContain('commit abc1234, 2026-11-21 09:25 UTC, load 0.20, 0.30 at the end\n');
    expect(text).toContain('npm run bench -- zookeeper (1 rounds, 12 s)\n');
    expect(text).toContain('ZooKeeper 3.8.0; NZC: node-zookeeper-client 1.1.3\n');
    expect(text).toContain('kazoo is absent: there is no Python with kazoo\n');
    expect(text).toContain('get, native: could not be measured: no answer\n');
  });

  it('for the documentation is a table with a column for each candidate', () => {
    expect(formats.markdown(resultOf(run, results, []))).toContain(
      '| get, window 100: client CPU per call | µs | 30 |  |  |  | 20 |  |  | ' +
        '≤ 1.40 × raw: 1.50 ×, MISSED |\n',
    );
  });

  it('for programs has an object for each figure and each goal', () => {
    const objects = formats
      .json(resultOf(run, results, []))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(objects[0]).toMatchObject({ kind: 'run', server: '3.8.0', commit: 'abc1234' });
    expect(objects.filter(({ kind }) => kind === 'figure')).toHaveLength(2);
    const judged = objects.filter(({ kind }) => kind === 'goal');
    expect(judged).toHaveLength(goals.length);
    expect(judged.filter(({ met }) => met !== null)).toMatchObject([
      { metric: 'get100Cpu', value: 1.5, met: false },
    ]);
  });

  it('has each metric once', () => {
    const names = (Object.keys(metrics) as MetricId[]).map((id) => metrics[id].name);
    expect(new Set(names).size).toBe(names.length);
  });
});
