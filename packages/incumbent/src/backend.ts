/**
 * For whoever writes a backend: implement `LeaseStore` (a read and a conditional write), make a
 * backend of it with `leaseBackend`, and run the conformance scenarios of `incumbent/testing`.
 */
export type { CandidateInfo } from './candidate.ts';
export type { Actor, ActorProcess, Backend, Scope } from './contest.ts';
export type { LeaseBackendOptions } from './lease/backend.ts';
export { leaseBackend } from './lease/backend.ts';
export type { Holding, LeaseRecord } from './lease/record.ts';
export { decodeLeaseRecord, encodeLeaseRecord } from './lease/record.ts';
export type { LeaseStore, Reading, SwapResult, Version } from './lease/store.ts';
export type { Reservation } from './record-fields.ts';
