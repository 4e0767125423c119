import type { NotElectedReason } from '../../base/not-elected.ts';
import { longestLeaseMs } from '../../base/timing.ts';
import type { Scope } from '../../core/contest.ts';
import type { Sighting } from './reading.ts';
import type { LeaseStore } from './store.ts';

interface SeenLease {
  readonly leaseMs: number;
  /** For how long looks have shown others since it was seen last. */
  readonly unseenMs: number;
}

/** How many leases unseen make one forgotten: one, and what two clocks may drift apart (ρ ≤ 0.2). */
const forgottenAfter = 1.5;

/** Of how many longer leases it is known when each was seen last. */
const mostLonger = 8;

/**
 * Tells a seat that is vacant from a record that is lost. A record that vanishes or goes back to an
 * older term (an operator deleted it, a server came back without its memory, a copy that lagged
 * behind took over) says nothing of whoever led: it may believe until its last lease has run out,
 * and nothing in the store keeps anybody from winning meanwhile. So it is waited for, by observed
 * time as ever. A store that says that it forgets tells its lives apart: each of them begins with a
 * loss, known or not. Not found out: that a term was lost which this candidate never saw, in a store
 * that does not say so.
 *
 * How long: any leader that was seen may have come again, unseen, before the loss. So the longest
 * lease that was seen counts, or our own. A leader that came and was never seen counts as one with our
 * own lease.
 *
 * A longer lease is forgotten once looks have shown others for longer than it lasts. A leader that goes on
 * with it would have been seen, and one that was seen last cannot believe any more. Only time in which
 * this candidate looked counts: a gap between two looks counts for one of our leases at most, and while a
 * loss is waited out nothing is forgotten. So after a gap the lease of before still counts.
 *
 * A lease longer than ours may be is a foreign one (a Kubernetes Lease takes 68 years). It counts as
 * the longest of ours, and only until somebody else is seen to lead, or nobody: its leader would have
 * to believe, unconfirmed, for more than an hour. A candidate that starts after the loss does not wait
 * for it at all: that, and no option, is the operator's way out.
 */
export class LossWatch {
  readonly #store: LeaseStore;
  readonly #scope: Scope;
  #highestToken = 0n;
  /** Leases longer than our own that were seen, of those that may be ours. The longest comes first. */
  #longer: readonly SeenLease[] = [];
  /** Monotonic: the last look. */
  #lookedMs = Number.POSITIVE_INFINITY;
  /** Whoever leads, or led when the record was lost, has a longer lease than ours may be. */
  #isOverlong = false;
  /** Monotonic: since when the record that was lost cannot have been confirmed any more. */
  #lostSinceMs: number | undefined;
  /** Monotonic: since when the store has lost nothing. */
  #lifeSinceMs: number | undefined;
  /** The same for people: when that was. */
  #lifeBornMs: number | undefined;

  constructor(store: LeaseStore, scope: Scope) {
    this.#store = store;
    this.#scope = scope;
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
  see({ record, sinceMs, lifeSinceMs, lifeBornMs }: Sighting): void {
    const forgets = this.#store.forgets === true;
    this.#lifeSinceMs = forgets ? lifeSinceMs : undefined;
    this.#lifeBornMs = lifeBornMs;
    const token = record?.token ?? 0n;
    const isMissing = token === 0n && forgets && lifeSinceMs === undefined;
    const leaseMs = record?.holding === undefined ? 0 : record.leaseMs;
    const isOverlong = leaseMs > longestLeaseMs;
    if (token < this.#highestToken || isMissing) {
      // What has come back may have been written long ago, and come back just now.
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

  /** @param leaseMs of the holder that was just seen; 0 without one */
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
    // A shorter one that was seen before this one is covered by it. Where there are too many, this one
    // counts as the next longer one.
    const longer = this.#longer.filter((seen) => seen.leaseMs > leaseMs);
    const countsAsMs = longer.length < mostLonger ? leaseMs : (longer.pop()?.leaseMs ?? leaseMs);
    this.#longer = [...longer, { leaseMs: countsAsMs, unseenMs: 0 }];
  }

  /** How much longer a leader may believe whose record is lost; at most 0 when none can. */
  get leftMs(): number {
    const sinceMs = Math.max(this.#lostSinceMs ?? -Infinity, this.#lifeSinceMs ?? -Infinity);
    const leaseMs = this.#isOverlong
      ? longestLeaseMs
      : (this.#longer[0]?.leaseMs ?? this.#scope.timing.leaseMs);
    return Math.max(0, sinceMs + leaseMs - this.#scope.clock.monotonicMs());
  }

  /** In words for people, while `leftMs` is more than 0. */
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
