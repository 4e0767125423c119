import { Deferred, onAbort } from '../base/wait.ts';
import type { SeatState } from './contest.ts';

/** The state that the record is to show of a leader, and whether it is known to show it. */
export class WantedState {
  #state: SeatState;
  #revision = 0;
  /** The revision that the record is known to show. */
  #shownRevision = 0;
  #shown = new Deferred<void>();

  /** @param state as the record shows it now */
  constructor(state: SeatState) {
    this.#state = state;
  }

  get state(): SeatState {
    return this.#state;
  }

  /** Grows with every change. */
  get revision(): number {
    return this.#revision;
  }

  get isShown(): boolean {
    return this.shows(this.#revision);
  }

  /** True when the record shows the state wanted at that revision, or a later one. */
  shows(revision: number): boolean {
    return this.#shownRevision >= revision;
  }

  change(state: SeatState): void {
    this.#state = state;
    this.#revision += 1;
  }

  /** The record shows the state wanted at that revision. */
  onShown(revision: number): void {
    if (revision <= this.#shownRevision) return;
    this.#shownRevision = revision;
    this.#shown.resolve();
    this.#shown = new Deferred();
  }

  /**
   * Resolves when the record shows the state that is wanted now.
   * @throws the reason of the first signal that aborts
   */
  async untilShown(...signals: readonly (AbortSignal | undefined)[]): Promise<void> {
    const revision = this.#revision;
    const stop = new Deferred<void>();
    const removers = signals.map((signal) => onAbort(signal, () => stop.resolve()));
    try {
      while (!this.shows(revision)) {
        await Promise.race([this.#shown.promise, stop.promise]);
        if (this.shows(revision)) return;
        for (const signal of signals) signal?.throwIfAborted();
      }
    } finally {
      for (const remove of removers) remove();
    }
  }
}
