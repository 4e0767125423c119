import type { TestProxy } from '@incumbent/zookeeper-testing';
import type { Timing } from 'incumbent';
import type { QuorumState } from '../harness/liveness.ts';
import type { Card } from '../harness/rounds.ts';
import type { Opening } from './plan.ts';

/** The name of the election. */
export const election = 'chaos';

export type StoreName = 'postgres' | 'redis' | 'etcd';

/** Told of the faults of the servers. */
export interface Told {
  quorum(state: QuorumState): void;
  /** A server was hit. */
  struck(): void;
  note(line: string): void;
  /** Something that must not be: the guarantee, and what was found. */
  blame(problem: string): void;
  /** The highest token in the log. */
  newestToken(): bigint;
}

export type Strand = (
  proxies: readonly TestProxy[],
  forMs: number,
  choice: number,
) => Promise<void>;

/** The servers of one store, and what can happen to them. */
export interface Stage {
  /** One line for people. */
  readonly about: string;
  /** One after the other, so that each follows leaders whose belief is longer, and shorter. */
  readonly leasesMs: readonly number[];
  readonly serverFaults: Readonly<Record<string, Card>>;
  /** Rounds that every run needs, however short. */
  readonly openings: readonly Opening[];
  /** For commands of operators; past every proxy. */
  readonly operatorUrl: string;
  /** The timing of candidates on this store. */
  timingOf(leaseMs: number): Timing;
  /** How long nobody may work while the store is up and nobody is struck. */
  boundMs(timings: readonly Timing[]): number;
  /** A network for one candidate: in front of the servers, in their order. */
  connect(): Promise<readonly TestProxy[]>;
  /** Where whoever has these finds the store. */
  url(proxies: readonly TestProxy[], leaseMs: number): string;
  /** Resolves when the servers are as they were. */
  strike(fault: string, forMs: number, choice: number): Promise<void>;
  /** Where a term has a place that can be deleted by hand: an operator does. */
  evict?(token: bigint): Promise<void>;
  /**
   * Where a server can be cut off from the others: leaves a client alone with one that is. Resolves
   * when it is healed.
   */
  readonly strand?: Strand | undefined;
  /** Resolves when all servers serve. @throws StuckError */
  ready(): Promise<void>;
  /** The part that could not be put to the test, and why. */
  readonly untested: string | undefined;
  close(): Promise<void>;
}
