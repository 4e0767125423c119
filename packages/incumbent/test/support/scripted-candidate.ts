import type { Election, ElectionOptions } from '../../src/index.ts';
import { createElection } from '../../src/index.ts';
import type { LeaseStore } from '../../src/lease/store.ts';
import type { SimulatedClock } from '../../src/testing/index.ts';
import type { ScriptedStore } from './scripted-store.ts';

/** The lease of a candidate on a scripted store. */
export const leaseMs = 10_000;

/**
 * A candidate that draws the shortest of all random times.
 * @param says what its store says or does otherwise
 */
export function candidate(
  store: ScriptedStore,
  clock: SimulatedClock,
  says: Partial<LeaseStore> = {},
  options: Partial<ElectionOptions<bigint>> = {},
): Election<bigint> {
  return createElection({
    name: 'jobs',
    backend: store.backend(says),
    clock,
    lease: leaseMs,
    candidate: { id: 'b' },
    random: () => 0,
    ...options,
  });
}
