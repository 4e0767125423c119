import { setMaxListeners } from 'node:events';

/** The time of a call is over. */
export class TimeUp extends Error {
  override readonly name: string = 'TimeUp';
}

export interface BoundOptions {
  readonly ms: number;
  /** The caller's. */
  readonly signal?: AbortSignal | undefined;
  /** Aborts when the client is closed. */
  readonly closed: AbortSignal;
}

/** How long one call may go on: its time, its caller's signal, and the life of the client. */
export class Bound implements Disposable {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #sources: readonly AbortSignal[];
  readonly #onAbort: (event: Event) => void;

  constructor({ ms, signal, closed }: BoundOptions) {
    this.#onAbort = ({ target }) => this.#controller.abort((target as AbortSignal).reason);
    this.#sources = signal === undefined ? [closed] : [signal, closed];
    this.#timer = setTimeout(() => this.#controller.abort(new TimeUp()), Math.ceil(ms));
    for (const source of this.#sources) {
      // Many calls may share one signal; Node would warn at the eleventh.
      setMaxListeners(0, source);
      if (source.aborted) this.#controller.abort(source.reason);
      else source.addEventListener('abort', this.#onAbort, { once: true });
    }
    setMaxListeners(0, this.#controller.signal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** What `promise` gives, or a rejection with the reason why it is over. */
  race<Value>(promise: Promise<Value>): Promise<Value> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(signal.reason);
      if (signal.aborted) giveUp();
      else signal.addEventListener('abort', giveUp, { once: true });
      // A rejection that comes after the end is nobody's.
      promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
    });
  }

  async pause(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    try {
      await this.race(over);
    } finally {
      clearTimeout(timer);
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    for (const source of this.#sources) source.removeEventListener('abort', this.#onAbort);
  }
}
