/**
 * Terms whose work says itself when it is ready. Drawn from a stream of its own, so that everything
 * else in a seed stays as it was.
 */
import type { CampaignOptions, Term } from 'incumbent';
import type { Coverage } from './coverage.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

/** The judge of the promises of readiness, in one election. */
export class Readiness {
  /** Terms that have begun and whose work has not called `ready()` yet. */
  readonly #unready = new Set<bigint>();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  begin(name: string, term: Term<unknown>, shown: false | undefined): void {
    this.#unready.add(term.token);
    if (term.isReady) this.#fail(`${name}: term ${term.token} begins as ready`);
    if (shown !== false)
      this.#fail(`the record of term ${term.token} says at once that it is ready`);
  }

  says(token: bigint): void {
    this.#unready.delete(token);
  }

  /** A record that was written, or the view of an observer. */
  check(token: bigint, isReady: boolean, who: string): void {
    if (isReady && this.#unready.has(token)) {
      this.#fail(`${who} says that term ${token} is ready, its work has not said so`);
    }
  }

  #fail(why: string): void {
    this.#world.fail('ready', why);
  }
}

/** One candidate's choice. */
export class ReadyCandidate {
  readonly options: Pick<CampaignOptions, 'ready' | 'readyTimeout'>;
  readonly #random: Random;
  readonly #leaseMs: number;

  constructor(random: Random, leaseMs: number) {
    this.#random = random;
    this.#leaseMs = leaseMs;
    this.options = random.chance(0.3)
      ? { ready: 'manual', readyTimeout: Math.ceil(leaseMs * random.between(0.3, 3)) }
      : {};
  }

  /**
   * Says after a while that the work of `term` is ready, if it ever does.
   * @param pause rejects when the work of the term is over, or told to stop
   * @param isOver whether that is so
   * @param checkRecord judges the record once the promise has resolved
   */
  async prepare(
    term: Term<unknown>,
    judge: Readiness,
    coverage: Coverage,
    isQuiet: boolean,
    pause: (ms: number) => Promise<void>,
    isOver: () => boolean,
    checkRecord: () => void,
  ): Promise<void> {
    const ms = isQuiet ? 0 : this.#random.next() ** 2 * 3 * this.#leaseMs;
    try {
      await pause(ms);
      if (isOver()) return;
      judge.says(term.token);
      await term.ready();
    } catch (error) {
      if (!isOver()) throw error;
      return;
    }
    coverage.count('terms that said that they are ready');
    checkRecord();
  }
}
