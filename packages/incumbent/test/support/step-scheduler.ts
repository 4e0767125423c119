/** Numbers from 0 to 1 that a seed determines (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

class Actor {
  #release: (() => void) | undefined;
  #stopped: (() => void) | undefined;
  finished = false;
  sleepsUntil = 0;

  readonly step = (): Promise<void> =>
    new Promise((resolve) => {
      this.#release = resolve;
      this.#stopped?.();
    });

  finish(): void {
    this.finished = true;
    this.#stopped?.();
  }

  /** Lets it take one step. Resolves when it is about to take the next, or has finished. */
  advance(): Promise<void> {
    return new Promise((resolve) => {
      this.#stopped = resolve;
      const release = this.#release;
      this.#release = undefined;
      release?.();
    });
  }
}

/**
 * Runs processes one step at a time, in an order that the seed determines. Now and then one falls
 * asleep between two steps while the others go on for long. So its knowledge becomes stale.
 */
export class StepScheduler {
  readonly random: () => number;
  readonly #actors: Actor[] = [];
  #time = 0;
  #failure: unknown;

  constructor(seed: number) {
    this.random = randomFrom(seed);
  }

  /** Starts a process. Its calls to the disk go through the interception that it is given. */
  spawn(body: (step: () => Promise<void>) => Promise<void>): void {
    const actor = new Actor();
    this.#actors.push(actor);
    const step = async () => {
      await actor.step();
      if (this.random() < 0.06) actor.sleepsUntil = this.#time + Math.floor(this.random() * 300);
    };
    actor
      .step()
      .then(() => body(step))
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => actor.finish());
  }

  async run(): Promise<void> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const left = this.#actors.filter(({ finished }) => !finished);
      if (left.length === 0) return;
      const awake = left.filter(({ sleepsUntil }) => sleepsUntil <= this.#time);
      const pool = awake.length > 0 ? awake : left;
      this.#time += 1;
      await pool[Math.floor(this.random() * pool.length)]!.advance();
    }
  }
}
