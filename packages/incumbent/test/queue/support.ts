import { expect } from 'vitest';
import type { Backend } from '../../src/core/contest.ts';
import { createElection } from '../../src/core/election.ts';
import type { ElectionOptions } from '../../src/core/options.ts';
import type { Term } from '../../src/core/term.ts';
import type { SimulatedQueueOptions, SimulatedQueueSession } from '../../src/testing/index.ts';
import { SimulatedClock, SimulatedQueueStore } from '../../src/testing/index.ts';

/**
 * T is 10 s, so H is 4 s, and R and X are 1 s. The successor of an unclean
 * leader waits H·1.05/0.95.
 */
export const beliefMs = 4_000;
export const waitMs = (beliefMs * 1.05) / 0.95;

type Rest = Partial<ElectionOptions<bigint>>;

/** Candidates on a simulated store with sessions, on one simulated clock. */
export class Stage {
  readonly clock: SimulatedClock;
  readonly store: SimulatedQueueStore;

  constructor(options: Omit<SimulatedQueueOptions, 'clock'> = {}, clock = new SimulatedClock()) {
    this.clock = clock;
    this.store = new SimulatedQueueStore({ clock, ...options });
  }

  /** @param path as this session spells the queue */
  candidate(id: string, { path = '', ...rest }: Rest & { readonly path?: string } = {}) {
    const session = this.store.connect(path);
    return { session, election: this.elect(session, id, rest) };
  }

  elect(session: SimulatedQueueSession, id: string, rest: Rest = {}) {
    const { clock } = this;
    const backend = this.backendOf(session);
    const common = { name: 'jobs', backend, clock, random: () => 0.5 };
    return createElection<bigint>({ ...common, candidate: { id }, ...rest });
  }

  /** The backend that `elect` takes, unless it is told otherwise. */
  backendOf(session: SimulatedQueueSession): Backend<bigint> {
    return session.backend;
  }

  /** Advances until the promise settles. The bound only turns a hang into a failure. */
  async soon<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    for (let i = 0; i < 3_000 && !settled; i += 1) await this.clock.advance(10);
    expect(settled).toBe(true);
    return promise;
  }

  /**
   * Advances until `next` leads. Both must never lead at once.
   * @returns how long it took, in ms
   */
  async handOver(first: Term<bigint>, next: Promise<Term<bigint>>): Promise<number> {
    const startMs = this.clock.monotonicMs();
    const won: Term<bigint>[] = [];
    void next.then((term) => won.push(term));
    for (let i = 0; i < 3_000 && won.length === 0; i += 1) {
      await this.clock.advance(10);
      expect(first.isLeading() && won.some((term) => term.isLeading())).toBe(false);
    }
    expect(won[0]?.isLeading()).toBe(true);
    expect(first.isLeading()).toBe(false);
    return this.clock.monotonicMs() - startMs;
  }
}
