import { OwnWrites } from '../../core/attempts.ts';
import type { LockParts } from './settings.ts';
import type { Holder, LockReading } from './store.ts';

/**
 * The memory of one handle on an election, kept from one campaign to the next: which
 * leader it follows.
 */
export class LockMemory {
  /** All earlier terms of this handle are over by the next campaign. */
  readonly own: OwnWrites = new OwnWrites();
  readonly #parts: Pick<LockParts<unknown>, 'scope' | 'settings'>;
  /**
   * The token of the first holder that was seen. A later holder may only have waited, as we do, for
   * the belief of the one before it.
   */
  #followed: bigint | undefined;
  /**
   * H of the last leader that a record named. 0 when it ended clean. The leaders before it
   * were waited out.
   */
  #followedBeliefMs = 0;

  constructor(parts: Pick<LockParts<unknown>, 'scope' | 'settings'>) {
    this.#parts = parts;
  }

  seeRecord({ record }: LockReading): void {
    if (record === undefined || record.token === 0n) return;
    this.#followedBeliefMs = record.holding === undefined ? 0 : record.beliefMs;
  }

  /** Another candidate has the lock. */
  seeHolder({ place }: Holder): void {
    this.#followed ??= place.token;
  }

  /** How long a lock that is ours has to wait before it may be announced, in ms. */
  waitMs({ record, wipedAfter, mayFollowOther = false }: LockReading): number {
    const { waitsForPredecessor, delayAfterWinMs } = this.#parts.settings;
    const { clockDrift, beliefMs } = this.#parts.scope.timing;
    if (!waitsForPredecessor) return delayAfterWinMs;
    const holding = record?.holding;
    let waitMs = 0;
    // Our own earlier term is known to be over: the same object has ended it.
    if (record !== undefined && holding !== undefined && !this.own.wrote(record)) {
      waitMs = record.beliefMs;
    }
    if (mayFollowOther) waitMs = Math.max(waitMs, beliefMs);
    // The record was deleted by hand. It would have said whether the leader before us led,
    // and ended clean.
    if (wipedAfter !== undefined && this.#followed !== undefined && wipedAfter > this.#followed) {
      waitMs = Math.max(waitMs, beliefMs, this.#followedBeliefMs);
    }
    return Math.max(delayAfterWinMs, (waitMs * (1 + clockDrift)) / (1 - clockDrift));
  }
}
