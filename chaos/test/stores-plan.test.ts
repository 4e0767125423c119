import { resolveTiming } from 'incumbent';
import { describe, expect, it } from 'vitest';
import { faultsOf } from '../src/harness/rounds.ts';
import { leaseBoundMs, queueBoundMs } from '../src/stores/bound.ts';
import type { Round, Scope } from '../src/stores/plan.ts';
import { faultNames, planRounds } from '../src/stores/plan.ts';
import { readSettings } from '../src/stores/settings.ts';
import { describePlan } from './plan-rules.ts';

const scope: Scope = {
  serverFaults: { kill: { cards: 2, from: 0.1, to: 1 }, flush: { cards: 1 } },
  openings: [
    { leader: 'silence', leaderLength: 2 },
    { waiting: 'freeze both', server: 'flush' },
    { leader: 'cut', server: 'flush', lagMs: -300 },
  ],
  strands: true,
  evicts: true,
};

function rounds(count: number, seed: number, of: Scope = scope): Round[] {
  const plan = planRounds(seed, of);
  return Array.from({ length: count }, () => plan.next().value as Round);
}

describe('the plan of chaos on a store', () => {
  describePlan(rounds, faultNames(scope));

  it('begins with what every run of that store needs, however short', () => {
    const [first, second, third] = rounds(3, 3) as [Round, Round, Round];
    expect(faultsOf(first)).toEqual(['silence']);
    expect(first.leader?.length).toBe(2);
    expect(faultsOf(second)).toEqual(['waiting: freeze both', 'servers: flush']);
    expect([third.leader?.afterMs, third.server?.afterMs]).toEqual([300, 0]);
  });

  it('strands nobody where servers cannot be cut off', () => {
    const never = rounds(500, 5, { ...scope, strands: false, evicts: false }).flatMap(faultsOf);
    expect(never).not.toContain('strand');
    expect(never).not.toContain('freeze and delete');
    expect(faultNames({ ...scope, strands: false })).not.toContain('strand');
  });
});

describe('the options of chaos on the stores', () => {
  it('takes all stores, or the one that is named', () => {
    expect(readSettings(['--seed', '7'])).toEqual({
      stores: ['postgres', 'redis', 'etcd'],
      seconds: 600,
      candidates: 6,
      seed: 7,
      broken: undefined,
    });
    expect(readSettings(['--store', 'redis', '--short', '--seed', '1'])).toMatchObject({
      stores: ['redis'],
      candidates: 4,
    });
  });

  it('runs a broken variant on the stores in which it is possible', () => {
    expect(readSettings(['--broken', 'no-wait'])).toMatchObject({ stores: ['etcd'] });
    expect(readSettings(['--broken', 'no-guard'])).toMatchObject({
      stores: ['postgres', 'redis', 'etcd'],
    });
    expect(() => readSettings(['--broken', 'no-wait', '--store', 'redis'])).toThrow('for etcd');
    expect(() => readSettings(['--store', 'mysql'])).toThrow('--store knows postgres, redis, etcd');
    expect(() => readSettings(['--broken', 'x'])).toThrow('--broken knows');
  });
});

describe('the bounds of chaos on the stores', () => {
  it('are longer than every wait that a takeover may need', () => {
    const timings = [resolveTiming({ lease: 2_000 }), resolveTiming({ lease: 3_000 })];
    expect(leaseBoundMs(timings, 3)).toBeGreaterThan(3 * 3_000);
    const onEtcd = [resolveTiming({}, { sessionTimeoutMs: 4_000 })];
    expect(queueBoundMs(onEtcd, 1_500)).toBeGreaterThan(4_000 + 1_500 + 0.4 * 4_000);
  });
});
