import type { Scope } from '../../core/contest.ts';
import { keepWatching } from './keep-watching.ts';
import type { Entry, NextPlace, Place, QueueStore, Succession, Watched } from './store.ts';

interface Parts {
  readonly store: QueueStore;
  readonly scope: Scope;
  readonly succession: Succession;
}

/** Knows, while we lead, which place is behind ours. No other one ever comes between. */
export class NextInLine {
  readonly #parts: Parts;
  readonly #place: Place;
  #name: string | undefined;
  #known: NextPlace | undefined;

  /** @param name the place behind ours, as it was when ours was seen to be the first */
  constructor(parts: Parts, place: Place, name: string | undefined) {
    this.#parts = parts;
    this.#place = place;
    this.#name = name;
  }

  /** As it was read last. Undefined: there is none, or it has changed since. */
  get known(): NextPlace | undefined {
    return this.#known;
  }

  /** Watches until `signal` aborts. */
  watch(entry: Entry, signal: AbortSignal): void {
    // Since the place before ours has gone, nobody has told that candidate that it is next.
    if (this.#name !== undefined) this.#wake(entry, signal);
    void keepWatching(this.#parts.scope, signal, {
      watch: (operation) => this.#look(operation),
      onValue: (next) => {
        this.#known = next;
        return true;
      },
    });
  }

  async #look(signal: AbortSignal): Promise<Watched<NextPlace | undefined>> {
    const { store, succession } = this.#parts;
    this.#known = undefined;
    if (this.#name === undefined) {
      const { value, changed, cancel } = await store.watchList(signal);
      const index = value.indexOf(this.#place.name);
      if (index >= 0) this.#name = value[index + 1];
      if (this.#name === undefined) return { value: undefined, changed, cancel };
      cancel();
    }
    const watched = await succession.watchNext(this.#name, signal);
    if (watched.value !== undefined) return watched;
    watched.cancel();
    this.#name = undefined;
    return { value: undefined, changed: Promise.resolve(), cancel: () => {} };
  }

  #wake(entry: Entry, signal: AbortSignal): void {
    const { scope, succession } = this.#parts;
    succession.touch(this.#place, entry, signal).catch((error: unknown) => {
      scope.onTrouble('waking the next in line', error);
    });
  }
}
