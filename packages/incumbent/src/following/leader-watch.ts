/** One observation of an election for all followers of its leader in this process. */
import type { CandidateInfo } from '../base/candidate.ts';
import { systemClock } from '../base/clock.ts';
import { ClosedError } from '../base/errors.ts';
import type { StoppableIterator } from '../base/iterate.ts';
import { asError } from '../base/thrown.ts';
import { publish } from '../core/diagnostics.ts';
import type { Election } from '../core/election.ts';
import type { View } from '../record/record.ts';

/** A leader that was seen. */
export interface KnownLeader {
  readonly info: CandidateInfo;
  readonly token: bigint | undefined;
}

/** A follower's knowledge of the leader. */
export interface Sight {
  /** `closed`: the handle on the election was closed, so nothing will ever be seen again. */
  readonly state: View['state'] | 'closed';
  /**
   * The present leader, or the last one. While the state is `unknown`, the leader when the store
   * was last read.
   */
  readonly leader: KnownLeader | undefined;
  /** Whether that leader led when last seen: true for `led`, and for `unknown` after `led`. */
  readonly led: boolean;
  /** Whether requests may go to that leader: it leads, and its work is prepared. */
  readonly ready: boolean;
  /** The highest token known of the term that leads or led last. */
  readonly token: bigint | undefined;
  /** Why the state is `unknown`. */
  readonly error: Error | undefined;
}

/**
 * The pause between looks that were asked for, at first and at most. It doubles while
 * the trouble lasts.
 */
const firstPauseMs = 1000;
const longestPauseMs = 30_000;
/** After so long without a request for a look, the next one is about other trouble. */
const peaceMs = 10_000;

const watches = new WeakMap<Election, LeaderWatch>();

/**
 * Follows `election.observe()` as long as there are subscribers. The first subscription begins it,
 * and the end of the last one ends it. It does not keep the process alive.
 */
export class LeaderWatch {
  readonly #election: Election;
  readonly #subscribers = new Set<(sight: Sight) => void>();
  #observing: Observing | undefined;
  #sight: Sight | undefined;

  private constructor(election: Election) {
    this.#election = election;
  }

  /** The one watch on this handle. */
  static of(election: Election): LeaderWatch {
    let watch = watches.get(election);
    if (watch === undefined) {
      watch = new LeaderWatch(election);
      watches.set(election, watch);
    }
    return watch;
  }

  /** Undefined until something was seen, and without subscribers. */
  get sight(): Sight | undefined {
    return this.#sight;
  }

  /**
   * A second call of the returned function does nothing.
   * @param listener called with every change, but never from within this call. The present state
   * is in `sight`
   * @returns a function that ends the subscription
   */
  subscribe(listener: (sight: Sight) => void): () => void {
    // A function of our own, so that one listener can subscribe twice.
    const subscriber = (sight: Sight) => listener(sight);
    this.#subscribers.add(subscriber);
    this.#observing ??= new Observing(this.#election, (view) => this.#see(view));
    return () => {
      this.#subscribers.delete(subscriber);
      if (this.#subscribers.size > 0) return;
      this.#observing?.end();
      this.#observing = undefined;
      // Without an observation nothing is known.
      this.#sight = undefined;
    };
  }

  /**
   * Reads the store soon, once, besides the observation. It does so rarely, however often
   * this is called.
   */
  lookAgain(): void {
    this.#observing?.lookAgain((view) => {
      if (this.#sight !== undefined && isNews(view, this.#sight)) this.#see(view);
    });
  }

  #see(view: View | 'closed'): void {
    this.#sight = next(this.#sight, view);
    for (const subscriber of [...this.#subscribers]) {
      // The failure of one subscriber must not reach the others.
      try {
        subscriber(this.#sight);
      } catch (error) {
        const what = 'telling a follower who leads';
        publish(
          'incumbent:trouble',
          { election: this.#election.name, candidate: '' },
          { what, error },
        );
      }
    }
  }
}

function next(before: Sight | undefined, view: View | 'closed'): Sight {
  const leader = before?.leader;
  const token = before?.token;
  const notLed = { leader, led: false, ready: false, error: undefined };
  if (view === 'closed') return { state: 'closed', ...notLed, token };
  const { state, error } = view;
  if (state === 'unknown') {
    return {
      state,
      leader,
      led: before?.led ?? false,
      ready: before?.ready ?? false,
      token,
      error,
    };
  }
  if (state === 'led' && view.leader !== undefined) {
    const seen = { info: view.leader, token: view.token };
    return {
      state,
      leader: seen,
      led: true,
      ready: isReady(view),
      token: view.token,
      error: undefined,
    };
  }
  return { state, ...notLed, token: view.token ?? token };
}

/** A store of a user's own may not tell. */
function isReady({ ready }: View): boolean {
  return ready !== false;
}

/**
 * True when one look knows more than the observation. A look does not know for how long a
 * record has not changed. A term that the observation found dead may look alive to it, so only
 * another term counts, or the same one if it has become ready.
 */
function isNews(view: View, sight: Sight): boolean {
  const known = sight.token ?? -1n;
  if (view.state === 'vacant') return sight.state === 'led' && (view.token ?? -1n) >= known;
  if (view.state !== 'led') return false;
  const isOther = view.leader?.incarnation !== sight.leader?.info.incarnation;
  if (sight.state === 'led' && view.token === sight.token && !isOther) {
    return isReady(view) && !sight.ready;
  }
  return view.token === undefined ? isOther : view.token > known;
}

/** True when `view` tells of an earlier term, or of the same term before it was ready. */
function isOlder(view: View, found: View): boolean {
  if (view.token === undefined || found.token === undefined) return false;
  if (view.token !== found.token) return view.token < found.token;
  return view.state === 'led' && !isReady(view) && isReady(found);
}

/** One observation from its beginning to its end. */
class Observing {
  readonly #election: Election;
  readonly #see: (view: View | 'closed') => void;
  readonly #end = new AbortController();
  #views: StoppableIterator<View> | undefined;
  #isLooking = false;
  #endWait: (() => void) | undefined;
  #lastAskedMs = Number.NEGATIVE_INFINITY;
  /** How many views the observation has reported. */
  #told = 0;
  /** The newest finding of a look since the observation last reported. */
  #found: View | undefined;
  #pauseMs = firstPauseMs;
  #notBeforeMs = 0;

  constructor(election: Election, see: (view: View | 'closed') => void) {
    this.#election = election;
    this.#see = see;
    void this.#run();
  }

  end(): void {
    this.#end.abort();
    void this.#views?.return().catch(() => {});
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      try {
        const views = this.#election.observe();
        this.#views = views;
        for await (const view of views) {
          if (signal.aborted) return;
          this.#pauseMs = firstPauseMs;
          this.#told += 1;
          const sure = await this.#settle(view);
          if (signal.aborted) return;
          this.#see(sure);
        }
        if (!signal.aborted) this.#see('closed');
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ClosedError) return this.#see('closed');
        // Observations end in views, not in errors. If one fails after all, it begins anew.
        this.#see({
          state: 'unknown',
          sinceUnixMs: systemClock.wallMs(),
          error: asError(error),
        });
        await this.#pause(firstPauseMs);
      }
    }
  }

  /**
   * A view that was read before a look may be reported after it. If it is older than the look's
   * finding, the store is asked once more. The election may have been begun anew as well.
   */
  async #settle(view: View): Promise<View> {
    const found = this.#found;
    this.#found = undefined;
    if (found === undefined || !isOlder(view, found)) return view;
    try {
      return await this.#election.leader({ signal: this.#end.signal });
    } catch {
      return view;
    }
  }

  lookAgain(see: (view: View) => void): void {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - this.#lastAskedMs > peaceMs) {
      this.#pauseMs = firstPauseMs;
      this.#notBeforeMs = nowMs;
      // A look that the last trouble has left waiting.
      this.#endWait?.();
    }
    this.#lastAskedMs = nowMs;
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#look(see).finally(() => {
      this.#isLooking = false;
    });
  }

  async #look(see: (view: View) => void): Promise<void> {
    const { signal } = this.#end;
    await this.#pause(Math.max(0, this.#notBeforeMs - systemClock.monotonicMs()), true);
    if (signal.aborted) return;
    const told = this.#told;
    try {
      const view = await this.#election.leader({ signal });
      // A view that the observation reported meanwhile may be newer.
      if (signal.aborted || told !== this.#told) return;
      this.#found = view;
      see(view);
    } catch {
      // The observation reports the store's trouble.
    }
    this.#notBeforeMs = systemClock.monotonicMs() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, longestPauseMs);
  }

  /**
   * Resolves after `ms`, or when the observation ends. For a look, also when that is due sooner.
   */
  #pause(ms: number, ofLook = false): Promise<void> {
    const { signal } = this.#end;
    return new Promise((resolve) => {
      const done = () => {
        if (ofLook) this.#endWait = undefined;
        timer.cancel();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = systemClock.setTimer(done, ms, true);
      if (ofLook) this.#endWait = done;
      signal.addEventListener('abort', done, { once: true });
      if (signal.aborted) done();
    });
  }
}
