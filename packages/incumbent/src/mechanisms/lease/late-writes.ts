import { isIncurable } from '../../base/errors.ts';
import { sleep } from '../../base/wait.ts';
import type { OwnWrites } from '../../core/attempts.ts';
import type { Scope } from '../../core/contest.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { emptyLeaseRecord } from '../../record/lease-record.ts';
import { takenBack, vacated } from '../../record/transitions.ts';
import type { Sighting } from './reading.ts';
import { readStore, swapStore } from './reading.ts';
import type { LeaseStore, Reading } from './store.ts';

/** The number of attempts that are remembered because they may land. */
const mostAttempts = 16;

/** How often taking back starts again because others write. */
const mostTries = 5;

/** A winning write of ours with an unknown outcome. */
interface Attempt {
  readonly nonce: string;
  /** The record that it was conditioned on. */
  readonly on: Pick<Reading, 'version' | 'life'>;
  /** The record before this write, and before earlier ones of ours that it was written over. */
  readonly before: LeaseRecord | undefined;
}

/**
 * Winning writes that may land after their candidate has said that it is not elected. No process
 * would believe in such a term, but observers would see it, and its successor would fence it. So a
 * candidate takes such writes back before it says so. A write that has landed is vacated, and the
 * record before it comes back. A write that has not landed is made to fail: another write takes the
 * version that it was conditioned on.
 */
export class LateWrites {
  readonly #store: LeaseStore;
  readonly #scope: Scope;
  readonly #own: OwnWrites;
  #attempts: readonly Attempt[] = [];
  #background: AbortController | undefined;

  constructor(store: LeaseStore, scope: Scope, own: OwnWrites) {
    this.#store = store;
    this.#scope = scope;
    this.#own = own;
  }

  /** A winning write is about to be sent. From here on nothing is taken back before `withdraw`. */
  expect(nonce: string, { record, version, life }: Sighting): void {
    // The background has only read versions that are older than this write, so it cannot hit it.
    this.stop();
    const before = this.beneath(record);
    const on = { version, ...(life === undefined ? {} : { life }) };
    this.#attempts = [...this.#attempts, { nonce, on, before }].slice(-mostAttempts);
  }

  /**
   * A read that was sent after the last attempt. It tells which attempts may still land,
   * or have landed.
   */
  see({ record, version, life }: Pick<Reading, 'record' | 'version' | 'life'>): void {
    this.#attempts = this.#attempts.filter(
      ({ nonce, on }) => nonce === record?.nonce || (on.version === version && on.life === life),
    );
  }

  /**
   * The record that a winner over `record` follows. If `record` is a late write of ours, that is
   * the one before it.
   */
  beneath(record: LeaseRecord | undefined): LeaseRecord | undefined {
    const attempt = this.#attempts.find(({ nonce }) => nonce === record?.nonce);
    return attempt === undefined ? record : attempt.before;
  }

  /** True when the record is one of our writes with an unknown outcome. */
  wrote(record: LeaseRecord): boolean {
    return this.#attempts.some(({ nonce }) => nonce === record.nonce);
  }

  /**
   * The seat is ours, or the store has certainly refused the writes. None of them can
   * land any more.
   */
  clear(): void {
    this.#attempts = [];
  }

  /**
   * Takes back writes that may have landed, or may still land. Bounded, and never rejects. If the
   * store does not answer, this goes on for one lease in the background.
   */
  async withdraw(): Promise<void> {
    if (this.#attempts.length === 0) return;
    const stop = new AbortController();
    this.#background = stop;
    if (!(await this.#attempt(stop.signal))) void this.#persist(stop.signal);
  }

  /** Stops sending in the background. */
  stop(): void {
    this.#background?.abort();
    this.#background = undefined;
  }

  async #persist(signal: AbortSignal): Promise<void> {
    const { clock, timing } = this.#scope;
    const untilMs = clock.monotonicMs() + timing.leaseMs;
    let pauseMs = timing.retryBackoffMs;
    do {
      await sleep(clock, pauseMs, signal, true).catch(() => {});
      if (signal.aborted) return;
      if (await this.#attempt(signal)) return;
      pauseMs = Math.min(2 * pauseMs, timing.pollEveryMs);
    } while (clock.monotonicMs() < untilMs);
  }

  /** @returns false when it is worth another try */
  async #attempt(signal: AbortSignal): Promise<boolean> {
    try {
      for (let tries = 0; tries < mostTries; tries += 1) {
        const reading = await readStore(this.#store, this.#scope, signal);
        signal.throwIfAborted();
        this.see(reading);
        const record = this.#withoutUs(reading);
        if (record === undefined) return true;
        const swap = { record, version: reading.version };
        const result = await swapStore(this.#store, this.#scope, swap, signal);
        if (result.outcome === 'ok') {
          this.clear();
          return true;
        }
      }
      return false;
    } catch (error) {
      if (signal.aborted) return true;
      this.#scope.onTrouble('taking back a write', error);
      return isIncurable(error);
    }
  }

  /** The record without our late writes. Undefined: none of them is there, nor can come. */
  #withoutUs({ record }: Reading): LeaseRecord | undefined {
    if (this.#attempts.length === 0) return undefined;
    const { uniqueId, clock, election, timing } = this.#scope;
    const landed = this.#attempts.find(({ nonce }) => nonce === record?.nonce);
    if (record === undefined) return emptyLeaseRecord(election, uniqueId(), timing.leaseMs);
    // The candidate was entitled to its attempt, so it is to this write: the holder cannot
    // believe any more.
    if (landed === undefined) {
      const writing = { nonce: uniqueId(), wallMs: clock.wallMs() };
      return vacated(record, this.#own.wrote(record), writing);
    }
    const { before } = landed;
    return takenBack(record, before, this.#own.wrote(before), uniqueId());
  }
}
