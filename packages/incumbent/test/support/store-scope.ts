import { systemClock } from '../../src/clock.ts';
import type { Scope } from '../../src/contest.ts';
import { resolveTiming } from '../../src/timing.ts';

let ids = 0;

/** What an election hands to its store, for a store that is tried by itself. */
export function storeScope(election: string, leaseMs: number): Scope {
  return {
    election,
    clock: systemClock,
    timing: resolveTiming({ lease: leaseMs }),
    random: Math.random,
    uniqueId: () => `id-${Math.random()}-${ids++}`,
    onTrouble: () => {},
  };
}
