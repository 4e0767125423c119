/** Tools for testing code that uses elections, and for testing backends. No test runner needed. */

/** The types of a lease store, for writers and wrappers of one. */
export type { ActorProcess, Backend, Scope } from '../core/contest.ts';
export type { LeaseStore, Reading, SwapResult, Version } from '../mechanisms/lease/store.ts';
export type { LeaseHolding as Holding, LeaseRecord } from '../record/lease-record.ts';
export type { Actor, Reservation } from '../record/record.ts';
export { SimulatedClock, type SimulatedClockOptions, settle } from './clock.ts';
export {
  type Capabilities,
  type ConformanceContext,
  type ConformanceOptions,
  runConformance,
  type Scenario,
  type ScenarioResult,
} from './conformance.ts';
export { electionScenarios } from './election-scenarios.ts';
export { listingScenarios } from './listing-scenarios.ts';
export type {
  HeldQueueOperation,
  QueueFault,
  QueueOperation,
  QueueOutage,
  SimulatedQueueOptions,
} from './queue-faults.ts';
export { type SimulatedQueueSession, SimulatedQueueStore } from './simulated-queue-store.ts';
export {
  type Fault,
  type HeldOperation,
  type OperationKind,
  type Outage,
  type SimulatedConnection,
  SimulatedLeaseStore,
} from './simulated-store.ts';
export { leaseStoreScenarios } from './store-scenarios.ts';
