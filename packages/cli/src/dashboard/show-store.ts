import { deriveTiming } from 'incumbent';
import type { OpenStore } from '../context.ts';
import type { Followed, StoreListener, StoreReading } from '../follow/store-follower.ts';
import type { LiveValues } from '../web/live-values.ts';
import { shownElection } from './show.ts';
import type { ShownStore } from './shown.ts';
import { electionKey } from './shown.ts';

/** Shows one store and its elections to any number of browsers. */
export class ShowStore implements StoreListener {
  readonly #index: number;
  readonly #open: OpenStore;
  readonly #live: LiveValues;
  readonly #candidateLeaseMs: number;

  constructor(index: number, open: OpenStore, live: LiveValues) {
    this.#index = index;
    this.#open = open;
    this.#live = live;
    this.#candidateLeaseMs = deriveTiming({}, open.backend.limits).leaseMs;
  }

  onStore(reading: StoreReading): void {
    const { url, backend } = this.#open;
    const shown: ShownStore = {
      ...{ ...reading, index: this.#index, url, kind: backend.kind },
      nowUnixMs: Date.now(),
    };
    this.#live.set(`store:${this.#index}`, shown);
  }

  onElection(name: string, summary: Followed): void {
    const shown = shownElection(this.#index, summary, name, this.#candidateLeaseMs);
    this.#live.set(electionKey(shown), shown);
  }

  onGone(name: string): void {
    this.#live.delete(electionKey({ store: this.#index, election: name }));
  }
}
