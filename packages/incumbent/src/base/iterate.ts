/** An async iterator that can be ended while a `next` of it waits. */
export interface StoppableIterator<T> extends AsyncIterableIterator<T> {
  return(): Promise<IteratorResult<T>>;
}

/**
 * A generator alone would queue `return` behind the `next` that waits, and so never end.
 * @param generate is told by its signal; it then has to come to an end, without throwing
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
