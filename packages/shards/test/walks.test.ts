import { describe, expect, it } from 'vitest';
import type { Broken } from './walks.ts';
import { walk } from './walks.ts';

/** mulberry32. A walk is known by its seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The first seed of so many that breaks a rule. */
function search(seeds: number, sameNumbers: boolean, broken: Broken = {}) {
  for (let seed = 1; seed <= seeds; seed += 1) {
    const fault = walk(randomOf(seed), { steps: 400, sameNumbers, broken });
    if (fault !== undefined) return { seed, ...fault };
  }
  return undefined;
}

describe('two coordinators and two holders, in a random order of their steps', () => {
  for (const sameNumbers of [false, true]) {
    const draw = sameNumbers ? 'draw the same number' : 'draw another number each time';
    it(`have never two owners when coordinators ${draw}`, () => {
      expect(search(500, sameNumbers)).toBeUndefined();
    });
  }

  it.each<[string, keyof Broken]>([
    ['grants before it has sealed all slots', 'grantsUnsealed'],
    ['forgets a write that had no answer', 'forgetsSent'],
    ['seals over a higher seal', 'overwritesSeals'],
    ['gives a shard up before it has ended its belief', 'leavesFirst'],
    ['deletes an entry before another slot has the shard', 'deletesFirst'],
    ['vacates a slot whose holder believes', 'vacatesBelievers'],
  ])('break a rule when one of them %s', (_what, rule) => {
    const found = search(3_000, false, { [rule]: true });
    expect(found).toBeDefined();
  });
});
