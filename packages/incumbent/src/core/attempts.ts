import type { Instant } from '../base/clock.ts';
import type { Candidacy, SeatState, SeatWrite } from './contest.ts';

/** A write whose outcome may turn out later. */
export interface Attempt {
  /** Both clocks, read before the write was sent. */
  readonly sentAt: Instant;
  readonly state: SeatState;
}

/**
 * The nonces that one handle has sent last. By them alone it knows its own writes. An id or an
 * incarnation would not do: a copy of this process has the same ones
 * (docs/design/identity-and-names.md).
 *
 * Bounded. A write of ours that is forgotten counts as another candidate's, and is waited out. The
 * write that stands in the record, as far as we know, is never forgotten. Any number may be sent
 * after it: during an outage no look at the record is possible.
 */
export class OwnWrites {
  static readonly limit = 64;
  /**
   * The time at which each nonce was sent. Undefined once the outcome of its write is known. The
   * map is made with the first write: most candidates only wait.
   */
  #nonces: Map<string, Instant | undefined> | undefined;
  #recorded: string | undefined;

  add(nonce: string, sentAt?: Instant): void {
    this.#nonces ??= new Map();
    // Keeps the newest nonce last.
    this.#nonces.delete(nonce);
    this.#nonces.set(nonce, sentAt);
    if (this.#nonces.size <= OwnWrites.limit) return;
    for (const oldest of this.#nonces.keys()) {
      if (oldest === this.#recorded) continue;
      this.#nonces.delete(oldest);
      return;
    }
  }

  /** A write of ours is known to have landed. Writes that were sent before it can land no more. */
  settle(nonce: string): void {
    this.#recorded = nonce;
    for (const each of this.#nonces?.keys() ?? []) this.#nonces?.set(each, undefined);
  }

  /** From now on a record with this nonce is another candidate's. */
  forget(nonce: string): void {
    this.#nonces?.delete(nonce);
    if (this.#recorded === nonce) this.#recorded = undefined;
  }

  /** Operators keep the nonce of the record that they change, so such a record counts as ours. */
  wrote(record: { readonly nonce: string } | undefined): boolean {
    if (record === undefined || this.#nonces?.has(record.nonce) !== true) return false;
    this.#recorded = record.nonce;
    return true;
  }

  /**
   * Whether the record is a late write of ours: sent less than `withinMs` ago, with an outcome that
   * we never learnt. Another leader may have followed a write whose outcome we know. Such a write
   * can only come back with a store that was set back. The same goes for a write of ours that is
   * older than `withinMs`.
   */
  wroteLate({ nonce }: { readonly nonce: string }, now: Instant, withinMs: number): boolean {
    const sentAt = this.#nonces?.get(nonce);
    if (sentAt === undefined) return false;
    // The monotonic clock does not count the time that a host was suspended.
    const agoMs = Math.max(now.monotonicMs - sentAt.monotonicMs, now.wallMs - sentAt.wallMs);
    return agoMs < withinMs;
  }
}

/**
 * Writes of one holder that may have landed. They are found again by their nonces. Bounded: when a
 * forgotten attempt lands, `OwnWrites` still knows it as ours, but it extends nothing.
 */
export class Attempts {
  static readonly limit = 16;
  readonly #own: OwnWrites;
  readonly #listener: Pick<Candidacy, 'onWrite'>;
  #attempts: readonly (Attempt & { readonly nonce: string })[] = [];

  /** @param listener told of each write before it is sent */
  constructor(own: OwnWrites, listener: Pick<Candidacy, 'onWrite'> = {}) {
    this.#own = own;
    this.#listener = listener;
  }

  add({ nonce, token }: SeatWrite, attempt: Attempt): void {
    this.#listener.onWrite?.({ nonce, token });
    this.#own.add(nonce, attempt.sentAt);
    this.#attempts = [...this.#attempts, { ...attempt, nonce }].slice(-Attempts.limit);
  }

  /** True when this handle has written the record. */
  wrote(record: { readonly nonce: string } | undefined): boolean {
    return this.#own.wrote(record);
  }

  find(nonce: string): Attempt | undefined {
    return this.#attempts.find((attempt) => attempt.nonce === nonce);
  }

  /**
   * The record was seen in a later state, so attempts on the earlier one can no longer land. The
   * attempt that was found stays: an operator's later write keeps its nonce.
   */
  settle(nonce: string): void {
    this.#attempts = this.#attempts.filter((attempt) => attempt.nonce === nonce);
    this.#own.settle(nonce);
  }
}
