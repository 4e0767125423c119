import { systemClock } from '../../src/base/clock.ts';
import { resolveTiming } from '../../src/base/timing.ts';
import type { Scope } from '../../src/core/contest.ts';

let ids = 0;

/** The scope that an election hands to its store, for a store that is tested alone. */
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
