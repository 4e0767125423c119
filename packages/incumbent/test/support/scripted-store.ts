import type { Backend } from '../../src/core/contest.ts';
import { leaseBackend } from '../../src/mechanisms/lease/backend.ts';
import type { LeaseStore, Reading, SwapResult } from '../../src/mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../src/record/lease-record.ts';

/** One cell whose operations a test can delay, lose or answer wrongly. */
export class ScriptedStore {
  record: LeaseRecord | undefined;
  version = 0;
  reads = 0;
  swaps = 0;
  /** Decides the outcome of a read. The default answers at once. */
  onRead: (apply: () => Reading) => Promise<Reading> = async (apply) => apply();
  /** Decides the outcome of a swap. `apply` carries it out. */
  onSwap: (apply: () => SwapResult, next: LeaseRecord) => Promise<SwapResult> = async (apply) =>
    apply();

  open(): LeaseStore {
    return {
      read: () => {
        this.reads += 1;
        return this.onRead(() => ({ record: this.record, version: this.version }));
      },
      swap: (expected, next) => {
        this.swaps += 1;
        return this.onSwap(() => {
          if (this.version !== expected) return { outcome: 'conflict' };
          this.record = next;
          this.version += 1;
          return { outcome: 'ok', version: this.version };
        }, next);
      },
    };
  }

  /** @param says methods and fields of the store that differ */
  backend(says: Partial<LeaseStore> = {}): Backend<bigint> {
    return leaseBackend({
      kind: 'scripted',
      description: 'a store that does what a test says',
      openStore: () => ({ ...this.open(), ...says }),
      guard: (_scope, _store, token) => token,
    });
  }

  /** Another candidate's term, as that one would have written it. */
  hold(id: string, token: bigint, leaseMs: number): void {
    this.version += 1;
    this.record = {
      election: 'jobs',
      token,
      nonce: `nonce-of-${id}-${this.version}`,
      leaseMs,
      ended: false,
      holding: {
        candidate: { id, incarnation: `incarnation-of-${id}`, addresses: [], metadata: {} },
        electedAtUnixMs: 1,
        announced: true,
        actors: null,
        revoked: false,
        request: undefined,
      },
      reservation: undefined,
      unfenced: [],
      drains: [],
      history: [],
    };
  }
}

/** A promise that never settles: a lost request or reply. */
export function lost<T>(): Promise<T> {
  return new Promise(() => {});
}
