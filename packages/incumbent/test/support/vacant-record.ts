import type { LeaseRecord } from '../../src/testing/index.ts';

/** A record of an election that nobody leads. */
export function vacantRecord(election: string, nonce: string): LeaseRecord {
  return {
    election,
    token: 1n,
    nonce,
    leaseMs: 1_000,
    ended: false,
    holding: undefined,
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
  };
}
