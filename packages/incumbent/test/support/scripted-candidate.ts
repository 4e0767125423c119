import { expect } from 'vitest';
import type { Election, ElectionOptions, Term } from '../../src/index.ts';
import { createElection } from '../../src/index.ts';
import type { LeaseStore } from '../../src/mechanisms/lease/store.ts';
import type { SimulatedClock } from '../../src/testing/index.ts';
import type { ScriptedStore } from './scripted-store.ts';

/** The lease of a candidate on a scripted store. */
export const leaseMs = 10_000;

/**
 * A candidate that draws the shortest of all random times.
 * @param says methods and fields of its store that differ
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

export interface Waiting {
  readonly clock: SimulatedClock;
  readonly store: ScriptedStore;
  readonly election: Election<bigint>;
}

/**
 * No write comes for `waitsMs`, and within `thenMs` more the campaign wins.
 * @returns its token, when the term has ended and the election is closed
 */
export async function waitsThenWins(
  { clock, store, election }: Waiting,
  campaign: Promise<Term<bigint>>,
  waitsMs: number,
  thenMs = 3_000,
): Promise<bigint> {
  await clock.advance(waitsMs);
  expect(store.swaps).toBe(0);
  await clock.advance(thenMs);
  const term = await campaign;
  await term[Symbol.asyncDispose]();
  await election.close();
  return term.token;
}
