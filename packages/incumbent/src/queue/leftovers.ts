import type { Scope } from '../contest.ts';
import { bounded, Wakeup } from '../wait.ts';
import { patienceMs } from './patience.ts';
import type { Entry, Place, QueueStore } from './store.ts';

/** The longest pause between two attempts. */
const longestPauseMs = 10_000;

/**
 * Places that could not be given up at once. One that stays blocks everybody behind it for as long
 * as its session lives, so it is tried until it is gone: at every return of the store, and in
 * growing intervals. Does not keep the process alive, and outlives the handle on the election.
 */
export class Leftovers {
  readonly #store: QueueStore;
  readonly #scope: Scope;

  constructor(store: QueueStore, scope: Scope) {
    this.#store = store;
    this.#scope = scope;
  }

  /** One attempt within the operation timeout; if it fails, others follow in the background. */
  async leave(entry: Entry, place: Place | undefined): Promise<boolean> {
    if (await this.#attempt(entry, place, this.#scope.timing.operationTimeoutMs)) return true;
    this.add(entry, place);
    return false;
  }

  add(entry: Entry, place: Place | undefined): void {
    void this.#persist(entry, place);
  }

  async #persist(entry: Entry, place: Place | undefined): Promise<void> {
    const { clock, timing, onTrouble } = this.#scope;
    const { session } = this.#store;
    const wakeup = new Wakeup();
    let isOver = false;
    const stopListening = session.onEvent((event) => {
      if (event === 'suspended') return;
      // A session that is over takes its places with it, also one whose name we never learnt.
      isOver ||= event === 'over';
      wakeup.raise();
    });
    try {
      let pauseMs = timing.retryBackoffMs;
      while (!isOver && !(place !== undefined && session.isOver(place))) {
        await wakeup.wait(clock, pauseMs, undefined, true);
        if (isOver || (await this.#attempt(entry, place, patienceMs(timing)))) return;
        pauseMs = Math.min(2 * pauseMs, longestPauseMs);
      }
    } catch (error) {
      onTrouble('giving up a place', error);
    } finally {
      stopListening();
    }
  }

  async #attempt(entry: Entry, place: Place | undefined, timeoutMs: number): Promise<boolean> {
    const { clock, onTrouble } = this.#scope;
    if (place !== undefined && this.#store.session.isOver(place)) return true;
    try {
      await bounded(clock, 'giving up a place', timeoutMs, new AbortController().signal, (signal) =>
        this.#store.leave(entry, place, signal),
      );
      return true;
    } catch (error) {
      onTrouble('giving up a place', error);
      // A missing right as well: an operator may grant it, and the session may live for ever.
      return this.#store.session.isEnded === true;
    }
  }
}
