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
  readonly #url: string;
  readonly #live: LiveValues;
  #candidateLeaseMs: number = deriveTiming({}).leaseMs;

  constructor(index: number, url: string, live: LiveValues) {
    this.#index = index;
    this.#url = url;
    this.#live = live;
  }

  onOpen({ backend }: OpenStore): void {
    this.#candidateLeaseMs = deriveTiming({}, backend.limits).leaseMs;
  }

  onStore(reading: StoreReading): void {
    const shown: ShownStore = {
      ...{ ...reading, index: this.#index, url: this.#url },
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
