import type { Scope } from '../contest.ts';
import type { Sighting } from './reading.ts';
import type { LeaseStore } from './store.ts';

/**
 * Tells a seat that is vacant from a record that is lost. A record that vanishes or goes back to an
 * older term (an operator deleted it, a server came back without its memory, a copy that lagged
 * behind took over) says nothing of whoever led: it may believe until its last lease has run out,
 * and nothing in the store keeps anybody from winning meanwhile. So it is waited for, by observed
 * time as ever. A store that says that it forgets tells its lives apart: each of them begins with a
 * loss, known or not. Not found out: that a term was lost which this candidate never saw, in a store
 * that does not say so.
 */
export class LossWatch {
  readonly #store: LeaseStore;
  readonly #scope: Scope;
  #highestToken = 0n;
  /** The longest that the leaders seen so far, or those with our own settings, may be protected. */
  #longestLeaseMs: number;
  /** Monotonic: since when the record that was lost cannot have been confirmed any more. */
  #lostSinceMs: number | undefined;
  /** Monotonic: since when the store has lost nothing. */
  #lifeSinceMs: number | undefined;

  constructor(store: LeaseStore, scope: Scope) {
    this.#store = store;
    this.#scope = scope;
    this.#longestLeaseMs = scope.timing.leaseMs;
  }

  /** The lowest token that the next term may have. */
  get nextToken(): bigint {
    const floor = this.#store.tokenFloor ?? 0n;
    return (floor > this.#highestToken ? floor : this.#highestToken) + 1n;
  }

  /** A term of this token is known to have been there. */
  note(token: bigint): void {
    if (token > this.#highestToken) this.#highestToken = token;
  }

  /** To be told of every record that is read. */
  see({ record, sinceMs, lifeSinceMs }: Sighting): void {
    this.#lifeSinceMs = this.#store.forgets === true ? lifeSinceMs : undefined;
    const token = record?.token ?? 0n;
    const isMissing = token === 0n && this.#store.forgets === true && lifeSinceMs === undefined;
    const isLost = token < this.#highestToken || isMissing;
    if (isLost) {
      // What has come back may have been written long ago, and come back just now.
      const nowMs = this.#scope.clock.monotonicMs();
      this.#lostSinceMs =
        record === undefined ? sinceMs : Math.max(sinceMs, this.#lostSinceMs ?? nowMs);
    } else {
      this.#lostSinceMs = undefined;
      this.note(token);
    }
    if (record?.holding !== undefined) {
      this.#longestLeaseMs = Math.max(this.#longestLeaseMs, record.leaseMs);
    }
  }

  /** How much longer a leader may believe whose record is lost; at most 0 when none can. */
  get leftMs(): number {
    const sinceMs = Math.max(this.#lostSinceMs ?? -Infinity, this.#lifeSinceMs ?? -Infinity);
    return Math.max(0, sinceMs + this.#longestLeaseMs - this.#scope.clock.monotonicMs());
  }
}
