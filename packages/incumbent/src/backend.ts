/**
 * For writers of a backend. Implement `LeaseStore` (a read and a conditional write), and make a
 * backend of it with `leaseBackend`. Then run the conformance scenarios of `incumbent/testing`.
 *
 * Also for processes that give back the seat of a leader that they saw die: `giveBackSeat`.
 */
export type { CandidateInfo } from './base/candidate.ts';
export type { ActorProcess, Backend, ElectionSummary, Scope } from './core/contest.ts';
export { type GiveBackSeatOptions, giveBackSeat } from './core/give-back-seat.ts';
export { noListing, type Wanted } from './core/listing.ts';
export type { SeatIdentity } from './core/seat-identity.ts';
export type { LeaseBackendOptions } from './mechanisms/lease/backend.ts';
export { leaseBackend } from './mechanisms/lease/backend.ts';
export type { LeaseLister, LeasePage, ListedLease } from './mechanisms/lease/listing.ts';
export type {
  LeaseStore,
  Leases,
  Reading,
  SwapResult,
  Version,
} from './mechanisms/lease/store.ts';
export type { LeaseHolding as Holding, LeaseRecord } from './record/lease-record.ts';
export { decodeLeaseRecord, encodeLeaseRecord } from './record/lease-record.ts';
export type { Actor, Reservation } from './record/record.ts';
