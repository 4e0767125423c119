import type { Clock, Timer } from '../base/clock.ts';
import { onAbort } from '../base/wait.ts';

/**
 * Candidates of one backend that may ask its store for a seat at once. A confirmation then waits
 * behind so many requests at most, however many elections begin in one moment.
 */
const mostAtOnce = 50;

/**
 * A turn that lasts longer does not keep the others waiting. So a store that is silent holds up a
 * candidate for a moment, and not for as long as all the others wait for an answer. But a store that
 * is that slow gets half as many at once, down to `fewestAtOnce`, and one more with each attempt that
 * ends sooner. Otherwise candidates would take the time that the renewals of terms need.
 */
const longestTurnMs = 1_000;
const fewestAtOnce = 10;

/** When it began, monotonic. */
interface Turn {
  sinceMs: number;
}

const known = new WeakMap<object, WeakMap<Clock, Turns>>();

/**
 * The attempts of all candidates of one process on one backend, so many at a time. An attempt that
 * waits for its turn has sent nothing. So nothing is old when it begins, no operation times out, and
 * a candidate that gives up costs the store nothing. The confirmations of terms take no turn.
 */
export class Turns {
  readonly #clock: Clock;
  /** The turns that keep others waiting, the oldest first. */
  readonly #taken: Set<Turn> = new Set();
  /** Attempts that wait, in order. Those of candidates that are in line already come first. */
  readonly #inLine: Set<() => void> = new Set();
  readonly #entering: Set<() => void> = new Set();
  #timer: Timer | undefined;
  #atOnce: number = mostAtOnce;
  /** When it was last halved, monotonic. */
  #halvedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Elections of one backend and one clock share their turns. */
  static of(backend: object, clock: Clock): Turns {
    const byClock = known.get(backend) ?? new WeakMap<Clock, Turns>();
    known.set(backend, byClock);
    const turns = byClock.get(clock) ?? new Turns(clock);
    byClock.set(clock, turns);
    return turns;
  }

  /**
   * Runs one attempt, at once if few others run.
   * @param isInLine true: the candidate has waited for a seat, and others may wait behind it
   * @throws `signal.reason` when aborted before its turn
   */
  async take<T>(attempt: () => Promise<T>, signal: AbortSignal, isInLine: boolean): Promise<T> {
    const turn: Turn = { sinceMs: 0 };
    if (this.#taken.size < this.#atOnce) this.#begin(turn);
    else await this.#begun(turn, signal, isInLine ? this.#inLine : this.#entering);
    try {
      return await attempt();
    } finally {
      this.#end(turn);
    }
  }

  #begin(turn: Turn): void {
    turn.sinceMs = this.#clock.monotonicMs();
    this.#taken.add(turn);
  }

  #end(turn: Turn): void {
    if (this.#taken.delete(turn)) {
      const tookMs = this.#clock.monotonicMs() - turn.sinceMs;
      if (tookMs >= longestTurnMs) this.#halve();
      else if (this.#atOnce < mostAtOnce) this.#atOnce += 1;
    }
    this.#next();
  }

  /** Attempts that began before it was halved say nothing new. */
  #halve(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#halvedMs < longestTurnMs) return;
    this.#halvedMs = nowMs;
    this.#atOnce = Math.max(fewestAtOnce, Math.floor(this.#atOnce / 2));
  }

  #begun(turn: Turn, signal: AbortSignal, waiting: Set<() => void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = () => {
        waiting.delete(go);
        forget();
        this.#begin(turn);
        resolve();
      };
      const forget = onAbort(signal, () => {
        waiting.delete(go);
        reject(signal.reason);
      });
      if (signal.aborted) return;
      waiting.add(go);
      this.#next();
    });
  }

  /** Lets those begin that can, and looks again when the oldest turn has lasted too long. */
  #next(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const turn of this.#taken) {
      if (nowMs - turn.sinceMs < longestTurnMs) break;
      this.#taken.delete(turn);
      this.#halve();
    }
    while (this.#taken.size < this.#atOnce) {
      const [go] = this.#inLine.size > 0 ? this.#inLine : this.#entering;
      if (go === undefined) break;
      go();
    }
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#inLine.size + this.#entering.size === 0) return;
    const [oldest] = this.#taken;
    const endMs = (oldest?.sinceMs ?? nowMs) + longestTurnMs;
    // The attempts under way have timers that keep the process alive.
    this.#timer = this.#clock.setTimer(() => this.#next(), Math.max(1, endMs - nowMs), true);
  }
}
