import type { NotElectedReason } from '../../base/not-elected.ts';
import { longestLeaseMs } from '../../base/timing.ts';
import type { Scope } from '../../core/contest.ts';
import type { Sighting } from './reading.ts';
import type { LeaseTraits } from './store.ts';

interface SeenLease {
  readonly leaseMs: number;
  /** For how long looks have shown other leases since this one was seen last, in ms. */
  readonly unseenMs: number;
}

/**
 * How many leases unseen make one forgotten: one, and what two clocks may drift apart (ρ ≤ 0.2).
 */
const forgottenAfter = 1.5;

/** For how many longer leases the time of the last sight is known. */
const mostLonger = 8;

/**
 * Tells a vacant seat from a lost record. A record may vanish or go back to an older term. An
 * operator deleted it, a server came back without its memory, or a copy that lagged behind took
 * over. Such a record says nothing of the last leader. That leader may believe until its last lease
 * has run out, and the store would let another candidate win meanwhile. So candidates wait for it,
 * by observed time as ever. A store that says that it forgets tells its lives apart: each of them
 * begins with a loss, known or not. One loss is not found out: that of a term which this candidate
 * never saw, in a store that does not say so.
 *
 * How long: any leader that was seen may have come again, unseen, before the loss. So the
 * longest lease that was seen counts, or our own. A leader that came and was never seen counts
 * with our own lease.
 *
 * A longer lease is forgotten once looks have shown others for longer than it lasts. A leader
 * that goes on with it would have been seen, and one that was seen last cannot believe any more.
 * Only time in which this candidate looked counts. A gap between two looks counts for one of our
 * leases at most, and while a loss is waited out nothing is forgotten. So after a gap the lease
 * of before still counts.
 *
 * A lease longer than ours may be is a foreign one (a Kubernetes Lease takes 68 years). It counts
 * as the longest of ours, and only until another leader, or a vacant seat, is seen. Its leader
 * would have to believe, unconfirmed, for more than an hour. A candidate that starts after the loss
 * does not wait for it at all. That, and no option, is the operator's way out.
 */
export class LossWatch {
  readonly #store: LeaseTraits;
  readonly #scope: Pick<Scope, 'clock' | 'timing'>;
  #highestToken = 0n;
  /**
   * Leases that were seen and are longer than our own, of those that may be ours. The
   * longest comes first.
   */
  #longer: readonly SeenLease[] = [];
  /** The time of the last look, monotonic. */
  #lookedMs = Number.POSITIVE_INFINITY;
  /** The leader, or the last one when the record was lost, has a longer lease than ours may be. */
  #isOverlong = false;
  /** The time since which the lost record cannot have been confirmed any more, monotonic. */
  #lostSinceMs: number | undefined;
  /** The time since which the store has lost nothing, monotonic. */
  #lifeSinceMs: number | undefined;
  /** The same time as the store tells it, for people. */
  #lifeBornMs: number | undefined;

  constructor(store: LeaseTraits, scope: Pick<Scope, 'clock' | 'timing'>) {
    this.#store = store;
    this.#scope = scope;
  }

  /** The lowest token that the next term may have. */
  get nextToken(): bigint {
    const floor = this.#store.tokenFloor ?? 0n;
    return (floor > this.#highestToken ? floor : this.#highestToken) + 1n;
  }

  /** A term with this token is known to have existed. */
  note(token: bigint): void {
    if (token > this.#highestToken) this.#highestToken = token;
  }

  /** Must be called with every record that is read. */
  see({ record, sinceMs, lifeSinceMs, lifeBornMs }: Sighting): void {
    const forgets = this.#store.forgets === true;
    this.#lifeSinceMs = forgets ? lifeSinceMs : undefined;
    this.#lifeBornMs = lifeBornMs;
    const token = record?.token ?? 0n;
    const isMissing = token === 0n && forgets && lifeSinceMs === undefined;
    const leaseMs = record?.holding === undefined ? 0 : record.leaseMs;
    const isOverlong = leaseMs > longestLeaseMs;
    if (token < this.#highestToken || isMissing) {
      // A record that has come back may be an old one, and may have come back just now.
      const nowMs = this.#scope.clock.monotonicMs();
      this.#lostSinceMs =
        record === undefined ? sinceMs : Math.max(sinceMs, this.#lostSinceMs ?? nowMs);
      this.#isOverlong ||= isOverlong;
    } else {
      this.#lostSinceMs = undefined;
      this.#isOverlong = isOverlong;
      this.note(token);
    }
    this.#remember(isOverlong ? 0 : leaseMs);
  }

  /** @param leaseMs the lease of the holder that was just seen. 0 without a holder */
  #remember(leaseMs: number): void {
    const { clock, timing } = this.#scope;
    const nowMs = clock.monotonicMs();
    if (this.leftMs <= 0) {
      const unseenMs = Math.min(Math.max(0, nowMs - this.#lookedMs), timing.leaseMs);
      this.#longer = this.#longer
        .map((seen) => ({ leaseMs: seen.leaseMs, unseenMs: seen.unseenMs + unseenMs }))
        .filter((seen) => seen.unseenMs <= seen.leaseMs * forgottenAfter);
    }
    this.#lookedMs = nowMs;
    if (leaseMs <= timing.leaseMs) return;
    // This lease covers a shorter one that was seen before. If there are too many, this one counts
    // as the next longer one.
    const longer = this.#longer.filter((seen) => seen.leaseMs > leaseMs);
    const countsAsMs = longer.length < mostLonger ? leaseMs : (longer.pop()?.leaseMs ?? leaseMs);
    this.#longer = [...longer, { leaseMs: countsAsMs, unseenMs: 0 }];
  }

  /** How much longer a leader whose record is lost may believe, in ms. At most 0 when none can. */
  get leftMs(): number {
    const sinceMs = Math.max(this.#lostSinceMs ?? -Infinity, this.#lifeSinceMs ?? -Infinity);
    const leaseMs = this.#isOverlong
      ? longestLeaseMs
      : (this.#longer[0]?.leaseMs ?? this.#scope.timing.leaseMs);
    return Math.max(0, sinceMs + leaseMs - this.#scope.clock.monotonicMs());
  }

  /** The reason for people, while `leftMs` is more than 0. */
  get reason(): NotElectedReason {
    const { clock } = this.#scope;
    const wasRestarted =
      this.#highestToken === 0n || (this.#lifeSinceMs ?? -Infinity) >= (this.#lostSinceMs ?? 0);
    const bornMs = wasRestarted ? this.#lifeBornMs : undefined;
    const nowMs = clock.monotonicMs();
    const sinceMs = bornMs ?? this.#lostSinceMs ?? this.#lifeSinceMs ?? nowMs;
    return {
      kind: 'settling',
      after: wasRestarted ? 'restart' : 'loss',
      sinceUnixMs: clock.wallMs() - (nowMs - sinceMs),
      untilUnixMs: clock.wallMs() + this.leftMs,
    };
  }
}
