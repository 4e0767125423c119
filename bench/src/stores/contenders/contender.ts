import type { Address } from '../messages.ts';

/** Each contender gives this to the process of a candidate. */
export interface Contender {
  /** Resolves when it leads. */
  campaign(election: string): Promise<Led>;
  readonly probe?: Probe;
}

/** Requests of the bare client. The record that is written has the size of one of ours. */
export interface Probe {
  /** One round trip each. */
  read(): Promise<unknown>;
  write(): Promise<unknown>;
  /** Writes, and wakes who listens to `topic`, in one round trip. */
  wake?(topic: string): Promise<unknown>;
  /** Resolves when it listens. */
  listen?(topic: string, onWoken: () => void): Promise<unknown>;
}

export interface Led {
  readonly token: string | null;
  isLeading(): boolean;
  /** Resolves when the seat is given back. */
  resign(): Promise<void>;
  onEnd(listener: () => void): void;
}

export type OpenContender = (address: Address, leaseMs: number) => Promise<Contender>;

/** A key of the process's own, so that no two write the same record. */
export const probeName: string = `bench-${process.pid}`;
/** As long as a young record. */
export const probeText: string = 'x'.repeat(1_000);
