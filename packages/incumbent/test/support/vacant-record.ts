import { emptyLeaseRecord } from '../../src/record/lease-record.ts';
import type { LeaseRecord } from '../../src/testing/index.ts';

/** A record of an election without a leader. */
export function vacantRecord(election: string, nonce: string): LeaseRecord {
  return { ...emptyLeaseRecord(election, nonce, 1_000), token: 1n };
}
