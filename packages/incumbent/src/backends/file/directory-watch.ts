import type { FSWatcher } from 'node:fs';
import { watch } from 'node:fs';

/**
 * Hints that a directory has a new file. Never throws and never keeps the process alive; where
 * the kernel has no more watches to give there are no hints, and those who wait poll anyway.
 */
export class DirectoryWatch {
  readonly #directory: string;
  readonly #isNews: (name: string) => boolean;
  readonly #onTrouble: (what: string, error: unknown) => void;
  readonly #watch: typeof watch;
  readonly #listeners = new Set<() => void>();
  #watcher: FSWatcher | undefined;
  #isTroubled = false;

  constructor(
    directory: string,
    isNews: (name: string) => boolean,
    onTrouble: (what: string, error: unknown) => void,
    watchDirectory: typeof watch = watch,
  ) {
    this.#directory = directory;
    this.#isNews = isNews;
    this.#onTrouble = onTrouble;
    this.#watch = watchDirectory;
  }

  /** @returns a function that ends it */
  add(onHint: () => void): () => void {
    // Its own function object: the same listener may be added twice.
    const listener = () => onHint();
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.stop();
    };
  }

  /** To be called when the directory is known to be there: it may have been gone meanwhile. */
  ensure(): void {
    if (this.#watcher !== undefined || this.#listeners.size === 0) return;
    try {
      const watcher = this.#watch(this.#directory, { persistent: false });
      this.#watcher = watcher;
      watcher.on('change', (_event, name) => this.#notice(name));
      watcher.on('error', (error) => {
        if (this.#watcher === watcher) this.stop();
        this.#complain(error);
      });
      this.#isTroubled = false;
    } catch (error) {
      this.#complain(error);
    }
  }

  /** Until `ensure` is called again. */
  stop(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  /** For ever. */
  close(): void {
    this.#listeners.clear();
    this.stop();
  }

  #notice(name: string | Buffer | null): void {
    // Some platforms do not say which file it was.
    if (typeof name === 'string' && !this.#isNews(name)) return;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Once, however often it is tried again. */
  #complain(error: unknown): void {
    if (this.#isTroubled) return;
    this.#isTroubled = true;
    this.#onTrouble(`watching ${this.#directory}: changes are found by polling`, error);
  }
}
