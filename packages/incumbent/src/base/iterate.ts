/** An async iterator that `return` ends, even while a `next` waits. */
export interface StoppableIterator<T> extends AsyncIterableIterator<T> {
  /** Ends the iteration, and resolves when it has ended. */
  return(): Promise<IteratorResult<T>>;
}

/**
 * A generator alone would queue `return` behind the `next` that waits, and so never end.
 * @param generate must come to an end, without throwing, when its signal aborts
 */
export function stoppable<T>(
  generate: (stop: AbortSignal) => AsyncGenerator<T, void, void>,
): StoppableIterator<T> {
  const stop = new AbortController();
  const generator = generate(stop.signal);
  return {
    next: () => generator.next(),
    return() {
      stop.abort();
      return generator.return();
    },
    throw(error) {
      stop.abort();
      return generator.throw(error);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
