import { bounded, Wakeup } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';
import type { Ghost } from './ghosts.ts';
import { takeBack } from './ghosts.ts';
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

  /**
   * One attempt within the operation timeout; if it fails, others follow in the background.
   * @param ghost an announcement from that place which is to be taken back as well
   */
  async leave(entry: Entry, place: Place | undefined, ghost?: Ghost): Promise<boolean> {
    const { operationTimeoutMs } = this.#scope.timing;
    if (await this.#attempt(entry, place, operationTimeoutMs, ghost)) return true;
    this.add(entry, place, ghost);
    return false;
  }

  add(entry: Entry, place: Place | undefined, ghost?: Ghost): void {
    void this.#persist(entry, place, ghost);
  }

  async #persist(entry: Entry, place: Place | undefined, ghost: Ghost | undefined): Promise<void> {
    const { clock, timing, onTrouble } = this.#scope;
    const { session } = this.#store;
    const wakeup = new Wakeup();
    const untilMs = clock.monotonicMs() + timing.leaseMs;
    let isOver = false;
    const stopListening = session.onEvent((event) => {
      if (event === 'suspended') return;
      // A session that is over takes its places with it, also one whose name we never learnt.
      isOver ||= event === 'over';
      wakeup.raise();
    });
    try {
      let pauseMs = timing.retryBackoffMs;
      const hasNothingLeft = () => {
        if (ghost !== undefined && clock.monotonicMs() < untilMs) return false;
        return isOver || (place !== undefined && session.isOver(place));
      };
      while (!hasNothingLeft()) {
        await wakeup.wait(clock, pauseMs, undefined, true);
        if (hasNothingLeft()) return;
        if (await this.#attempt(entry, place, patienceMs(timing), ghost)) return;
        pauseMs = Math.min(2 * pauseMs, longestPauseMs);
      }
    } catch (error) {
      onTrouble('giving up a place', error);
    } finally {
      stopListening();
    }
  }

  async #attempt(
    entry: Entry,
    place: Place | undefined,
    timeoutMs: number,
    ghost: Ghost | undefined,
  ): Promise<boolean> {
    const { clock, onTrouble } = this.#scope;
    const { session } = this.#store;
    const isGone = () => place !== undefined && session.isOver(place);
    if (ghost === undefined && isGone()) return true;
    try {
      const { signal } = new AbortController();
      await bounded(clock, 'giving up a place', timeoutMs, signal, async (operation) => {
        if (ghost !== undefined) await takeBack(this.#store, this.#scope, ghost, operation);
        if (!isGone()) await this.#store.leave(entry, place, operation);
      });
      return true;
    } catch (error) {
      onTrouble('giving up a place', error);
      // A missing right as well: an operator may grant it, and the session may live for ever.
      return this.#store.session.isEnded === true;
    }
  }
}
