import type { FSWatcher } from 'node:fs';
import { watch } from 'node:fs';

/**
 * Hints that a directory has a new file. Never throws and never keeps the process alive. Where the
 * kernel has no watches left, there are no hints, and waiting candidates poll anyway.
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
    // A function object of its own, because the same listener may be added twice.
    const listener = () => onHint();
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.stop();
    };
  }

  /** Call it when the directory is known to be there. It may have been gone meanwhile. */
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

  /** Stops until `ensure` is called again. */
  stop(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  /** Stops for ever. */
  close(): void {
    this.#listeners.clear();
    this.stop();
  }

  #notice(name: string | Buffer | null): void {
    // Some platforms do not say which file it was.
    if (typeof name === 'string' && !this.#isNews(name)) return;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Complains once, however often it is tried again. */
  #complain(error: unknown): void {
    if (this.#isTroubled) return;
    this.#isTroubled = true;
    this.#onTrouble(`watching ${this.#directory}: changes are found by polling`, error);
  }
}
