import type { Picture } from './view.ts';

export type ChangeListener = (picture: Picture) => unknown;

/** Tells listeners of changes: what comes in one turn is told once, the latest wins. */
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
    // Twice the same function is two listeners.
    const own = (picture: Picture) => listener(picture);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Something was heard of. */
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
      // Also what an async one rejects with.
      Promise.resolve(picture)
        .then(listener)
        .catch(() => {});
    }
  }
}
