/** A client that sends requests and waits for the answers. */
export interface Traveller {
  connected(): void;
  sent(): void;
  received(): void;
}

/**
 * Counts the round trips that stand one behind the other, between any number of clients and one
 * store. It uses no real clock but a logical one, of which every message makes half a step. A
 * message of a client is half a step later than all that the client has heard. A message of the
 * store is half a step later than all that the store has been told. So a notification that another
 * one's write has caused takes half a round trip more than that write.
 *
 * Clients that do unrelated things at the same time are counted as if each had waited for the
 * other. So the count may be too large, never too small. Let nobody do anything else meanwhile.
 */
export class RoundTrips {
  #storeSteps = 0;
  #generation = 0;

  /** From now on counts from zero. */
  restart(): void {
    this.#generation += 1;
    this.#storeSteps = 0;
  }

  /** A client, with all of its connections. */
  traveller(): Traveller & { readonly taken: number } {
    let steps = 0;
    let generation = this.#generation;
    const present = () => {
      if (generation !== this.#generation) steps = 0;
      generation = this.#generation;
      return steps;
    };
    const raise = (to: number) => {
      steps = Math.max(present(), to);
    };
    const store = (to: number) => {
      this.#storeSteps = Math.max(this.#storeSteps, to);
    };
    const storeSteps = () => this.#storeSteps;
    return {
      /** Opening a connection is a round trip, before anything can be said by it. */
      connected: () => raise(present() + 2),
      sent: () => store(present() + 1),
      received: () => raise(storeSteps() + 1),
      /** Round trips until now, in what this client has heard. */
      get taken() {
        return present() / 2;
      },
    };
  }
}
