import { bounded, Wakeup } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';
import { askTimeoutMs } from './ask.ts';
import type { Entry, Place, QueueStore } from './store.ts';
import type { PendingAnnouncement } from './take-back.ts';
import { takeBack } from './take-back.ts';

/** The longest pause between two attempts. */
const longestPauseMs = 10_000;

/**
 * Places that could not be given up at once. A place that stays blocks all behind it for as
 * long as its session lives. So giving it up is tried until it is gone: whenever the store
 * comes back, and at growing intervals. It does not keep the process alive, and outlives the
 * handle on the election.
 */
export class Leftovers {
  readonly #store: QueueStore;
  readonly #scope: Scope;

  constructor(store: QueueStore, scope: Scope) {
    this.#store = store;
    this.#scope = scope;
  }

  /**
   * Makes one attempt within the operation timeout. If it fails, others follow in the background.
   * @param pending an announcement from that place which is to be taken back as well
   */
  async leave(
    entry: Entry,
    place: Place | undefined,
    pending?: PendingAnnouncement,
  ): Promise<boolean> {
    const { operationTimeoutMs } = this.#scope.timing;
    if (await this.#attempt(entry, place, operationTimeoutMs, pending)) return true;
    this.add(entry, place, pending);
    return false;
  }

  add(entry: Entry, place: Place | undefined, pending?: PendingAnnouncement): void {
    void this.#persist(entry, place, pending);
  }

  async #persist(
    entry: Entry,
    place: Place | undefined,
    pending: PendingAnnouncement | undefined,
  ): Promise<void> {
    const { clock, timing, onTrouble } = this.#scope;
    const { session } = this.#store;
    const wakeup = new Wakeup();
    const untilMs = clock.monotonicMs() + timing.leaseMs;
    let isOver = false;
    const stopListening = session.onEvent((event) => {
      if (event === 'suspended') return;
      // A session that is over takes its places with it, even one whose name we never learnt.
      isOver ||= event === 'over';
      wakeup.raise();
    });
    try {
      let pauseMs = timing.retryBackoffMs;
      const hasNothingLeft = () => {
        if (pending !== undefined && clock.monotonicMs() < untilMs) return false;
        return isOver || (place !== undefined && session.isOver(place));
      };
      while (!hasNothingLeft()) {
        await wakeup.wait(clock, pauseMs, undefined, true);
        if (hasNothingLeft()) return;
        if (await this.#attempt(entry, place, askTimeoutMs(timing), pending)) return;
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
    pending: PendingAnnouncement | undefined,
  ): Promise<boolean> {
    const { clock, onTrouble } = this.#scope;
    const { session } = this.#store;
    const isGone = () => place !== undefined && session.isOver(place);
    if (pending === undefined && isGone()) return true;
    try {
      const { signal } = new AbortController();
      await bounded(clock, 'giving up a place', timeoutMs, signal, async (operation) => {
        if (pending !== undefined) await takeBack(this.#store, this.#scope, pending, operation);
        // With a mark, the place is gone by now.
        if (pending?.mark === undefined && !isGone()) {
          await this.#store.leave(entry, place, operation);
        }
      });
      return true;
    } catch (error) {
      onTrouble('giving up a place', error);
      // Goes on after a missing right, too: an operator may grant it, and the session may
      // live for ever.
      return this.#store.session.isEnded === true;
    }
  }
}
