import type { Clock, Timer } from '@incumbent/zookeeper';
import { systemClock } from '../clock.ts';

/** The time of a call is over. */
export class TimeUp extends Error {
  override readonly name: string = 'TimeUp';
}

/** All calls that are under way, so that `close` can end them together. */
export class Bounds {
  readonly #timers: Clock;
  readonly #bounds = new Set<Bound>();
  #closed: { readonly reason: Error } | undefined;

  constructor(timers: Clock = systemClock) {
    this.#timers = timers;
  }

  /** @param signal the caller's */
  begin(ms: number, signal: AbortSignal | undefined): Bound {
    const forget = (ended: Bound) => this.#bounds.delete(ended);
    const bound = new Bound(ms, signal, forget, this.#timers);
    this.#bounds.add(bound);
    if (this.#closed !== undefined) bound.end(this.#closed.reason);
    return bound;
  }

  close(reason: Error): void {
    this.#closed ??= { reason };
    for (const bound of [...this.#bounds]) bound.end(reason);
  }
}

/**
 * The limits of one call: its time, its caller's signal, and the life of the client. It makes an
 * AbortSignal only if something asks for it, because there is one Bound for each command.
 */
export class Bound implements Disposable {
  readonly #timer: Timer;
  readonly #signal: AbortSignal | undefined;
  readonly #forget: (bound: Bound) => void;
  readonly #listeners = new Set<() => void>();
  readonly #onAbort = () => this.end(this.#signal?.reason);
  #over: { readonly reason: unknown } | undefined;
  #controller: AbortController | undefined;

  constructor(
    ms: number,
    signal: AbortSignal | undefined,
    forget: (bound: Bound) => void,
    timers: Clock = systemClock,
  ) {
    this.#signal = signal;
    this.#forget = forget;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#timer = timers.setTimer(() => this.end(new TimeUp()), ms);
    if (signal?.aborted === true) this.#onAbort();
  }

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** The reason of the end, once it is over. */
  get reason(): unknown {
    return this.#over?.reason;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#over !== undefined) this.#controller.abort(this.#over.reason);
    return this.#controller.signal;
  }

  end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    this[Symbol.dispose]();
    this.#controller?.abort(reason);
    for (const listener of [...this.#listeners]) listener();
    this.#listeners.clear();
  }

  /** Calls `listener` when it is over, unless it is over already. @returns removes the listener */
  onOver(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves or rejects as `promise` does, or rejects with the reason of the end. */
  race<Value>(promise: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(this.reason);
      const forget = this.onOver(giveUp);
      if (this.isOver) giveUp();
      // A result that comes after the end is dropped.
      promise.then(
        (value) => {
          forget();
          resolve(value);
        },
        (error: unknown) => {
          forget();
          reject(error);
        },
      );
    });
  }

  [Symbol.dispose](): void {
    this.#timer.cancel();
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#forget(this);
  }
}
