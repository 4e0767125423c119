import type { Deadline } from 'incumbent';
import type { GuardKeeper } from './guard-keeper.ts';

/** So many guards start at a time. A machine that starts dozens of processes is slow at each. */
const lanes = 4;
/** So many stay for the next programs. */
const mostIdle = 2;

/** Guards for many programs at a time. Each holds one program, and all are told of one belief. */
export class GuardPool {
  readonly #make: () => GuardKeeper;
  readonly #all = new Set<GuardKeeper>();
  readonly #idle: GuardKeeper[] = [];
  readonly #lanes: Promise<unknown>[] = Array.from({ length: lanes }, () => Promise.resolve());
  #started = 0;
  #belief: Deadline | undefined;

  constructor(make: () => GuardKeeper) {
    this.#make = make;
  }

  /** Belief was extended, or found to be shorter; undefined: it is over. */
  belief(deadline: Deadline | undefined): void {
    this.#belief = deadline;
    for (const keeper of this.#all) keeper.belief(deadline);
  }

  /** @param job has one guard for itself. It settles when its program is gone */
  async use<T>(job: (guard: GuardKeeper) => Promise<T>): Promise<T> {
    const keeper = this.#idle.pop() ?? (await this.#add());
    try {
      return await job(keeper);
    } finally {
      if (this.#idle.length < mostIdle) {
        this.#idle.push(keeper);
      } else {
        this.#all.delete(keeper);
        void keeper.close();
      }
    }
  }

  /** Ends all guards. Programs that are still there are killed. */
  async close(): Promise<void> {
    await Promise.all([...this.#all].map((keeper) => keeper.close()));
  }

  #add(): Promise<GuardKeeper> {
    const lane = this.#started % lanes;
    this.#started += 1;
    const added = (this.#lanes[lane] as Promise<unknown>).then(() => {
      const keeper = this.#make();
      keeper.belief(this.#belief);
      this.#all.add(keeper);
      return keeper;
    });
    // A guard that cannot be started is reported to the program that needs it.
    this.#lanes[lane] = added.then((keeper) => keeper.get()).catch(() => {});
    return added;
  }
}
