import type { Coverage } from './coverage.ts';
import type { World } from './world.ts';

export interface Effect {
  readonly token: bigint;
  /** Sent right after `assertLeading(m)`, and delivered within m by the sender's clock. */
  readonly isPromised: boolean;
  readonly from: string;
  readonly sentAtMs: number;
}

/** Something outside that leaders write to, and that checks tokens. */
export class Resource {
  /** Terms about whose margin nothing is promised. The mechanism says which. */
  readonly excused: Set<bigint> = new Set();
  readonly #world: World;
  readonly #coverage: Coverage;
  #highest = 0n;
  #highestFrom = '';

  constructor(world: World, coverage: Coverage) {
    this.#world = world;
    this.#coverage = coverage;
  }

  arrive(effect: Effect): void {
    if (this.excused.has(effect.token)) return;
    if (effect.token >= this.#highest) {
      this.#highest = effect.token;
      this.#highestFrom = effect.from;
      return;
    }
    this.#coverage.count('effects of an older term refused');
    if (!effect.isPromised) return;
    this.#world.fail(
      'margin',
      `an effect of term ${effect.token} (${effect.from}), sent at ${effect.sentAtMs.toFixed(3)} ms ` +
        `with enough belief left for its delivery, arrived after one of term ${this.#highest} ` +
        `(${this.#highestFrom})`,
    );
  }

  /** An operator deleted the record: what was before does not bind the tokens after. */
  forget(): void {
    this.#highest = 0n;
  }
}
