/** A bounded queue of events between a producer and a consumer. */
export class EventBuffer<T> {
  readonly #limit: number;
  readonly #onOverflow: (dropped: readonly T[]) => readonly T[];
  #events: T[] = [];
  #waiting: ((event: T | undefined) => void)[] = [];
  #ended = false;

  /**
   * @param limit how many events may wait
   * @param onOverflow chooses the events to keep, of those that wait and the one that was too many
   */
  constructor(limit: number, onOverflow: (events: readonly T[]) => readonly T[]) {
    this.#limit = limit;
    this.#onOverflow = onOverflow;
  }

  push(event: T): void {
    if (this.#ended) return;
    const next = this.#waiting.shift();
    if (next !== undefined) {
      next(event);
      return;
    }
    this.#events.push(event);
    if (this.#events.length > this.#limit) this.#events = [...this.#onOverflow(this.#events)];
  }

  /** The next event; undefined at the end. Events that were pushed before the end still come. */
  next(): Promise<T | undefined> {
    const event = this.#events.shift();
    if (event !== undefined || this.#ended) return Promise.resolve(event);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  end(): void {
    this.#ended = true;
    for (const next of this.#waiting) next(undefined);
    this.#waiting = [];
  }
}
