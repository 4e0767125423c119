import { pause } from '../harness/time.ts';

/** Lets the actors of the load work, or stand still for an inspection. */
export class Gate {
  #shut = true;
  #ended = false;
  #actors = 0;
  readonly #parked = new Set<() => void>();

  /** Repeats `act` with pauses between until the end. Never rejects as long as `act` does not. */
  async loop(pauseMs: () => number, act: () => Promise<void> | void): Promise<void> {
    this.#actors += 1;
    for (;;) {
      while (this.#shut && !this.#ended) {
        await new Promise<void>((resolve) => this.#parked.add(resolve));
      }
      if (this.#ended) break;
      await act();
      await pause(pauseMs());
    }
    this.#actors -= 1;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Nobody is at work. */
  get still(): boolean {
    return this.#parked.size === this.#actors;
  }

  shut(): void {
    this.#shut = true;
  }

  open(): void {
    this.#shut = false;
    this.#release();
  }

  end(): void {
    this.#ended = true;
    this.#release();
  }

  #release(): void {
    for (const go of this.#parked) go();
    this.#parked.clear();
  }
}
