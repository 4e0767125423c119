/** Waits for a leader, for requests that cannot go on without one. */
import { setMaxListeners } from 'node:events';
import { describeValue } from '../base/candidate.ts';
import { systemClock } from '../base/clock.ts';
import { ClosedError, InvalidOptionError } from '../base/errors.ts';
import { onAbort } from '../base/wait.ts';
import type { Election } from '../core/election.ts';
import type { KnownLeader } from './leader-watch.ts';
import { LeaderWatch } from './leader-watch.ts';

/**
 * One user's hold on the process's observation of an election, until it is closed. It does not keep
 * the process alive. Waiting for a leader does, because a request comes after it.
 */
export class Follower {
  readonly election: Election;
  readonly #watch: LeaderWatch;
  readonly #unsubscribe: () => void;
  readonly #closing = new AbortController();

  /** @throws InvalidOptionError */
  constructor(election: Election) {
    checkElection(election);
    this.election = election;
    // Any number of requests may wait.
    setMaxListeners(0, this.#closing.signal);
    this.#watch = LeaderWatch.of(election);
    this.#unsubscribe = this.#watch.subscribe(() => {});
  }

  /** True when no view will come any more. */
  get isOver(): boolean {
    return this.#closing.signal.aborted || this.#watch.sight?.state === 'closed';
  }

  /** True when the store has been read, or was found to be unreadable. */
  get hasLooked(): boolean {
    return this.#watch.sight !== undefined;
  }

  /** Why the store cannot be read, while it cannot. */
  get trouble(): Error | undefined {
    return this.#watch.sight?.error;
  }

  /**
   * The leader that requests should go to: one that is ready. While the store cannot be read, that
   * is the last known leader. It knows itself whether it still leads.
   */
  get leader(): KnownLeader | undefined {
    const sight = this.#watch.sight;
    return sight?.ready === true ? sight.leader : undefined;
  }

  /** A leader whose work is not prepared yet. Requests wait for it. */
  get unready(): KnownLeader | undefined {
    const sight = this.#watch.sight;
    return sight?.led === true && !sight.ready ? sight.leader : undefined;
  }

  /** The token of the term that leads, or led last. */
  get token(): bigint | undefined {
    return this.#watch.sight?.token;
  }

  /**
   * The known leader turned out to be wrong. Reads the store soon, but rarely, however often
   * this is called.
   */
  lookAgain(): void {
    this.#watch.lookAgain();
  }

  /** @returns a function that ends the subscription */
  onChange(listener: () => void): () => void {
    return this.#watch.subscribe(listener);
  }

  /**
   * Waits until `pick` returns a value. Calls it at once, and then at each change.
   * @param waitMs 0 to 2^31 - 1
   * @returns undefined when `waitMs` passed first
   * @throws `signal.reason` when aborted
   * @throws the error of `pick`
   * @throws ClosedError when no view will come any more
   */
  until<T>(
    pick: (follower: this) => T | undefined,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const removers: (() => void)[] = [];
      const settle = (finish: () => void) => {
        for (const remove of removers) remove();
        finish();
      };
      const look = (): boolean => {
        if (signal?.aborted) {
          settle(() => reject(signal.reason));
          return true;
        }
        if (this.isOver) {
          settle(() => reject(new ClosedError(this.election.name)));
          return true;
        }
        try {
          const found = pick(this);
          if (found !== undefined) settle(() => resolve(found));
          return found !== undefined;
        } catch (error) {
          // The error is the user's, and must not reach other followers.
          settle(() => reject(error));
          return true;
        }
      };
      if (look()) return;
      if (waitMs <= 0) return resolve(undefined);
      const timer = systemClock.setTimer(() => settle(() => resolve(undefined)), waitMs);
      removers.push(
        () => timer.cancel(),
        this.#watch.subscribe(look),
        onAbort(signal, look),
        onAbort(this.#closing.signal, look),
      );
    });
  }

  /** A second call does nothing. The observation itself ends with its last subscriber. */
  close(): void {
    this.#closing.abort();
    this.#unsubscribe();
  }
}

/** @throws InvalidOptionError */
export function checkElection(election: unknown): void {
  const like = election as Partial<Election> | null | undefined;
  if (typeof like?.observe !== 'function' || typeof like.name !== 'string') {
    throw new InvalidOptionError(
      `election must be what createElection gave, not ${describeValue(election)}`,
    );
  }
}
