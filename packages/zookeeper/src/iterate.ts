import { onAbort } from './on-abort.ts';

/** An async iterator that can be ended while its `next` waits. */
export interface StoppableIterator<T> extends AsyncIterableIterator<T> {
  return(): Promise<IteratorResult<T>>;
}

/**
 * Makes an iterator that ends at once at `return`. A generator alone would queue `return` behind
 * the `next` that waits, and so never end.
 * @param generate must end when its signal aborts
 * @param outer ends the iteration when it aborts
 */
export function stoppable<T>(
  outer: AbortSignal | undefined,
  generate: (stop: AbortSignal) => AsyncGenerator<T, void, void>,
): StoppableIterator<T> {
  const stop = new AbortController();
  if (outer?.aborted === true) stop.abort();
  const forget = onAbort(outer, () => stop.abort());
  const generator = generate(stop.signal);
  return {
    async next() {
      try {
        const result = await generator.next();
        if (result.done === true) forget();
        return result;
      } catch (error) {
        forget();
        throw error;
      }
    },
    return() {
      forget();
      stop.abort();
      return generator.return();
    },
    throw(error) {
      forget();
      stop.abort();
      return generator.throw(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** Resolves when `promise` does, or with undefined when `stop` aborts. */
export function orStopped<T>(promise: Promise<T>, stop: AbortSignal): Promise<T | undefined> {
  if (stop.aborted) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const stopListening = onAbort(stop, () => resolve(undefined));
    void promise.then(resolve, reject).finally(stopListening); // rejects with `resolve`'s promise
  });
}
