import { closeSync, openSync, readSync } from 'node:fs';
import type { Effect } from './effect.ts';
import { Judge } from './judge.ts';

/** Often enough to act while a worker starts. The measured times come from the lines themselves. */
const lookEveryMs = 20;

/** Follows the log while it is written, and judges it. Made before the first worker starts. */
export class FencedLog {
  readonly path: string;
  readonly judge: Judge = new Judge();
  readonly #fd: number;
  readonly #buffer = Buffer.allocUnsafe(65_536);
  readonly #listeners = new Set<(effect: Effect) => void>();
  readonly #timer: NodeJS.Timeout;
  #position = 0;
  #partial = '';

  /** @throws when there is a file of that name already */
  constructor(path: string) {
    this.path = path;
    this.#fd = openSync(path, 'ax+');
    this.#timer = setInterval(() => this.read(), lookEveryMs);
  }

  /** Reads what was written since. */
  read(): void {
    for (;;) {
      const count = readSync(this.#fd, this.#buffer, 0, this.#buffer.length, this.#position);
      if (count === 0) return;
      this.#position += count;
      const lines = (this.#partial + this.#buffer.toString('latin1', 0, count)).split('\n');
      this.#partial = lines.pop() ?? '';
      for (const line of lines) {
        const effect = this.judge.add(line);
        if (effect === undefined) continue;
        for (const listener of this.#listeners) listener(effect);
      }
    }
  }

  /** @returns a function that ends it */
  onEffect(listener: (effect: Effect) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    clearInterval(this.#timer);
    this.read();
    closeSync(this.#fd);
  }
}
