import type { Picture } from './view.ts';

export type ChangeListener = (picture: Picture) => unknown;

/**
 * Calls listeners after changes. Several changes in one turn of the event loop are one call, with
 * the latest state.
 */
export class ChangeTeller {
  readonly #picture: () => Picture;
  readonly #listeners = new Set<ChangeListener>();
  #told: string;
  #scheduled: NodeJS.Immediate | undefined;

  constructor(picture: () => Picture) {
    this.#picture = picture;
    this.#told = JSON.stringify(picture());
  }

  add(listener: ChangeListener): () => void {
    // A function that is added twice is called twice.
    const own = (picture: Picture) => listener(picture);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** To be called after every possible change. */
  look(): void {
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = undefined;
      this.#tell();
    });
  }

  close(): void {
    clearImmediate(this.#scheduled);
    this.#listeners.clear();
  }

  #tell(): void {
    const picture = this.#picture();
    const text = JSON.stringify(picture);
    if (text === this.#told) return;
    this.#told = text;
    for (const listener of [...this.#listeners]) {
      // A rejection of an async listener is ignored, too.
      Promise.resolve(picture)
        .then(listener)
        .catch(() => {});
    }
  }
}
