import type { Scope } from '../../core/contest.ts';
import { keepWatching } from './keep-watching.ts';
import type { Entry, NextPlace, Place, QueueStore, Succession, Watched } from './store.ts';

/** Knows, while we lead, which place is behind ours. No other one ever comes between. */
export class NextInLine {
  readonly #store: QueueStore;
  readonly #scope: Scope;
  readonly #place: Place;
  #name: string | undefined;
  #known: NextPlace | undefined;
  #hasListed = false;

  constructor(store: QueueStore, scope: Scope, place: Place) {
    this.#store = store;
    this.#scope = scope;
    this.#place = place;
  }

  /** As it was read last. Undefined: there is none, or it has changed since. */
  get known(): NextPlace | undefined {
    return this.#known;
  }

  /** Watches until `signal` aborts. */
  watch(entry: Entry, succession: Succession, signal: AbortSignal): void {
    void keepWatching(this.#scope, signal, {
      watch: (operation) => this.#look(entry, succession, operation),
      onValue: (next) => {
        this.#known = next;
        return true;
      },
    });
  }

  async #look(
    entry: Entry,
    succession: Succession,
    signal: AbortSignal,
  ): Promise<Watched<NextPlace | undefined>> {
    this.#known = undefined;
    if (this.#name === undefined) {
      this.#name = this.#behind(await this.#store.list(signal));
      // Since the place before ours has gone, nobody has told it that it is next.
      if (this.#name !== undefined && !this.#hasListed) this.#wake(entry, succession, signal);
      this.#hasListed = true;
    }
    if (this.#name === undefined) {
      const { value, changed, cancel } = await this.#store.watchList(signal);
      this.#name = this.#behind(value);
      if (this.#name === undefined) return { value: undefined, changed, cancel };
      cancel();
    }
    const watched = await succession.watchNext(this.#name, signal);
    if (watched.value !== undefined) return watched;
    watched.cancel();
    this.#name = undefined;
    return { value: undefined, changed: Promise.resolve(), cancel: () => {} };
  }

  #wake(entry: Entry, succession: Succession, signal: AbortSignal): void {
    succession.touch(this.#place, entry, signal).catch((error: unknown) => {
      this.#scope.onTrouble('waking the next in line', error);
    });
  }

  #behind(names: readonly string[]): string | undefined {
    const index = names.indexOf(this.#place.name);
    return index < 0 ? undefined : names[index + 1];
  }
}
