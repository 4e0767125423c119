import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { resolveTiming } from 'incumbent';
import { describe, expect, it, onTestFinished } from 'vitest';
import { imbalanceOf } from '../src/shards/balance.ts';
import { balanceBoundMs } from '../src/shards/bound.ts';
import type { Round } from '../src/shards/plan.ts';
import { planRounds, rowsOf } from '../src/shards/plan.ts';
import { readSettings } from '../src/shards/settings.ts';
import { ShardLogs } from '../src/shards/shard-logs.ts';

const activity = (group: number, lastMs: number) => ({
  ...{ token: 1n, candidate: 'm1', group, effects: 2, firstLine: 1, lastLine: 2, firstNs: 0n },
  lastNs: BigInt(lastMs * 1e6),
});
const members = new Map([
  [11, 'm1'],
  [12, 'm2'],
]);

describe('the judge of balance', () => {
  it('wants each shard to have an owner that takes part and acts', () => {
    const newest = [activity(11, 100), activity(12, 100), activity(11, 100)];
    expect(imbalanceOf(newest, members, 50)).toBeUndefined();
    expect(imbalanceOf([...newest, undefined], members, 50)).toContain('for the shards 3 (m1: 2');
    expect(imbalanceOf([...newest, activity(13, 100)], members, 50)).toContain('the shards 3');
    expect(imbalanceOf([...newest, activity(12, 49)], members, 50)).toContain('the shards 3');
  });

  it('wants all processes to own as many, also those that own nothing', () => {
    const uneven = [activity(11, 100), activity(11, 100)];
    expect(imbalanceOf(uneven, members, 50)).toBe('the shares are uneven (m1: 2, m2: 0)');
    expect(imbalanceOf([activity(11, 100)], members, 50)).toBeUndefined();
  });
});

describe('the logs of shards', () => {
  function logsWith(lines: readonly string[]): ShardLogs {
    const directory = mkdtempSync(join(tmpdir(), 'incumbent-shards-'));
    const logs = new ShardLogs(directory, 2);
    onTestFinished(() => {
      logs.close();
      rmSync(directory, { recursive: true });
    });
    writeFileSync(logs.paths[1] as string, lines.map((line) => `${line}\n`).join(''));
    logs.read();
    return logs;
  }

  it('are judged each by itself, and say which shard it is', () => {
    const logs = logsWith(['4 m1 11 11 1000 start', '3 m2 12 12 2000 start']);
    expect(logs.violations().map(({ message }) => message)).toEqual([
      'shard 1: term 3 (m2) began, in line 2, after term 4 (m1)',
    ]);
    expect(logs.newest.map((term) => term?.token)).toEqual([undefined, 4n]);
  });

  it('show two owners at once', () => {
    const logs = logsWith([
      '3 m1 11 11 1000 start',
      '4 m2 12 12 2000 start',
      '3 m1 11 11 3000 beat',
    ]);
    expect(logs.overlaps()).toHaveLength(1);
    expect(logs.violations().map(({ guarantee }) => guarantee)).toEqual([
      'mutual exclusion',
      'order of effects',
    ]);
  });
});

describe('the plan of chaos on shards', () => {
  const rounds = (count: number, seed: number, isRemote: boolean): Round[] => {
    const plan = planRounds(seed, isRemote);
    return Array.from({ length: count }, () => plan.next().value as Round);
  };

  it('follows from the seed alone, and strikes somebody in every round', () => {
    expect(rounds(60, 7, true)).toEqual(rounds(60, 7, true));
    expect(rounds(60, 7, true)).not.toEqual(rounds(60, 8, true));
    for (const isRemote of [true, false]) {
      expect(rounds(200, 3, isRemote).every((round) => rowsOf(round).length > 0)).toBe(true);
    }
  });

  it('has every fault in two hundred rounds, and none of a network on files', () => {
    const remote = new Set(rounds(200, 5, true).flatMap(rowsOf));
    const local = new Set(rounds(200, 5, false).flatMap(rowsOf));
    const ofProcess = ['kill', 'freeze', 'drain', 'close', 'resign'];
    const rows = (faults: readonly string[]) =>
      ['coordinator', 'another'].flatMap((who) => faults.map((fault) => `${who}: ${fault}`));
    expect(local).toEqual(new Set([...rows(ofProcess), 'all: freeze everybody']));
    expect(remote).toEqual(
      new Set([
        ...rows([...ofProcess, 'cut', 'silence', 'drop replies']),
        ...['freeze everybody', 'cut everybody', 'kill store', 'freeze store'].map(
          (fault) => `all: ${fault}`,
        ),
      ]),
    );
  });
});

describe('the options of chaos on shards', () => {
  it('takes all stores, or the one that is named', () => {
    expect(readSettings(['--seed', '7'])).toEqual({
      stores: ['file', 'postgres', 'redis', 'zookeeper', 'etcd'],
      ...{ seconds: 600, members: 5, shards: 24, seed: 7, broken: undefined },
    });
    const short = readSettings(['--store', 'redis', '--short', '--seed', '1']);
    expect(short).toMatchObject({ stores: ['redis'], members: 3, shards: 12 });
  });

  it.each([
    [['--store', 'mysql'], '--store knows file, postgres, redis, zookeeper, etcd, not "mysql"'],
    [['--members', '2'], '--members must be a whole number from 3 to 50, not "2"'],
    [['--shards', '0'], '--shards must be a whole number from 1 to 256, not "0"'],
    [['--broken', 'x'], '--broken knows trusts-signal, works-on, idles, not "x"'],
  ])('refuses %j', (argv, message) => {
    expect(() => readSettings(argv)).toThrow(message);
  });
});

it('the bound of balance is computed from the timing', () => {
  const timing = resolveTiming({ lease: '2s' });
  expect(balanceBoundMs(timing, 0)).toBeGreaterThan(3 * timing.leaseMs + 8_000);
  expect(balanceBoundMs(timing, 70) - balanceBoundMs(timing, 0)).toBe(70);
});
