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

/** Of how many attempts it is remembered that they may land. */
const mostAttempts = 16;

/** How often taking back begins anew because others write. */
const mostTries = 5;

/** A winning write of ours whose outcome nobody has told us. */
interface Attempt {
  readonly nonce: string;
  /** What it was conditioned on. */
  readonly on: Pick<Reading, 'version' | 'life'>;
  /** What stood before it, and before earlier ones that it was written over. */
  readonly before: LeaseRecord | undefined;
}

/**
 * Winning writes that may land after their candidate has said that it is not elected. Nobody would believe
 * in such a term, but observers would see it, and its successor would fence it. So a candidate takes them
 * back before it says so: one that has landed is vacated, and what stood before it comes back; one that
 * has not cannot land any more once something else is written on the version that it was conditioned on.
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
    // What it has read by now is older than this write, so it cannot hit it.
    this.stop();
    const before = this.beneath(record);
    const on = { version, ...(life === undefined ? {} : { life }) };
    this.#attempts = [...this.#attempts, { nonce, on, before }].slice(-mostAttempts);
  }

  /** A read that was sent after the last attempt: tells which of them may still land, or have landed. */
  see({ record, version, life }: Pick<Reading, 'record' | 'version' | 'life'>): void {
    this.#attempts = this.#attempts.filter(
      ({ nonce, on }) => nonce === record?.nonce || (on.version === version && on.life === life),
    );
  }

  /** What whoever wins over `record` follows: where that is one of ours, what stood before it. */
  beneath(record: LeaseRecord | undefined): LeaseRecord | undefined {
    const attempt = this.#attempts.find(({ nonce }) => nonce === record?.nonce);
    return attempt === undefined ? record : attempt.before;
  }

  /** Whether it is one of ours that nobody has told us of. */
  wrote(record: LeaseRecord): boolean {
    return this.#attempts.some(({ nonce }) => nonce === record.nonce);
  }

  /** The seat is ours, or the store has refused the writes for certain: none of them lands any more. */
  clear(): void {
    this.#attempts = [];
  }

  /**
   * Takes back what may have landed, or may still. Bounded; never rejects. If the store does not answer,
   * it goes on for one lease, and nobody waits for that.
   */
  async withdraw(): Promise<void> {
    if (this.#attempts.length === 0) return;
    const stop = new AbortController();
    this.#background = stop;
    if (!(await this.#attempt(stop.signal))) void this.#persist(stop.signal);
  }

  /** Nothing is sent any more. */
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

  /** Undefined: none of ours is there, nor can come. */
  #withoutUs({ record }: Reading): LeaseRecord | undefined {
    if (this.#attempts.length === 0) return undefined;
    const { uniqueId, clock, election, timing } = this.#scope;
    const landed = this.#attempts.find(({ nonce }) => nonce === record?.nonce);
    if (record === undefined) return emptyLeaseRecord(election, uniqueId(), timing.leaseMs);
    // Whoever could write the attempt may write this: the holder cannot believe any more.
    if (landed === undefined) {
      const writing = { nonce: uniqueId(), wallMs: clock.wallMs() };
      return vacated(record, this.#own.wrote(record), writing);
    }
    const { before } = landed;
    return takenBack(record, before, this.#own.wrote(before), uniqueId());
  }
}
