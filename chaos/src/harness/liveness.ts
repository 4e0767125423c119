/** All in ms of the monotonic clock. */
export interface Bounds {
  /** How long nobody may work while a quorum is up. */
  readonly leaderMs: number;
  /** How long the servers may take to elect a leader when a majority of them could. */
  readonly electionMs: number;
}

/** The state of the servers. `able`: a majority runs and can talk, but does not serve (yet). */
export type QuorumState = 'up' | 'able' | 'down';

/**
 * Judges that somebody works whenever somebody could. Knows instants only: effects of programs,
 * strikes, and what the servers do.
 */
export class Liveness {
  /** How long each election of the servers took. */
  readonly electionsMs: number[] = [];
  readonly #bounds: Bounds;
  #longestIdleMs = 0;
  #quorum: QuorumState = 'up';
  /** Since when the quorum has been as it is. */
  #quorumSinceMs: number;
  #workedMs: number;
  #struckMs: number;
  /** Said already of the present silence, or of the present election. */
  #said = false;

  constructor(bounds: Bounds, nowMs: number) {
    this.#bounds = bounds;
    this.#quorumSinceMs = nowMs;
    this.#workedMs = nowMs;
    this.#struckMs = nowMs;
  }

  works(atMs: number): void {
    if (atMs <= this.#workedMs) return;
    this.#longestIdleMs = Math.max(this.#longestIdleMs, atMs - this.#workedMs);
    this.#workedMs = atMs;
    this.#said = false;
  }

  /** The longest time without an effect of anybody, since it was asked last. */
  takeIdle(): number {
    const longestMs = this.#longestIdleMs;
    this.#longestIdleMs = 0;
    return longestMs;
  }

  /** Somebody was hit who led, might lead, or serves. */
  struck(atMs: number): void {
    this.#struckMs = Math.max(this.#struckMs, atMs);
  }

  quorum(state: QuorumState, atMs: number): void {
    if (state === this.#quorum) return;
    if (this.#quorum === 'able' && state === 'up') {
      this.electionsMs.push(atMs - this.#quorumSinceMs);
    }
    this.#quorum = state;
    this.#quorumSinceMs = atMs;
    this.#said = false;
  }

  /**
   * @param stalledMs how long this process did not run, between two instants: nothing can be expected
   * of the others meanwhile
   * @returns what is late, in words, once
   */
  look(nowMs: number, stalledMs: (fromMs: number, toMs: number) => number): string | undefined {
    if (this.#said || this.#quorum === 'down') return undefined;
    const { leaderMs, electionMs } = this.#bounds;
    const isUp = this.#quorum === 'up';
    const boundMs = isUp ? leaderMs : electionMs;
    const sinceMs = isUp
      ? Math.max(this.#workedMs, this.#struckMs, this.#quorumSinceMs)
      : Math.max(this.#struckMs, this.#quorumSinceMs);
    if (nowMs - sinceMs - stalledMs(sinceMs, nowMs) <= boundMs) return undefined;
    this.#said = true;
    const what = isUp
      ? 'liveness: nobody works, with the store up and nobody struck'
      : 'servers: a majority runs and can talk, but does not serve';
    return `${what}, for more than ${(boundMs / 1000).toFixed(1)} s`;
  }
}
