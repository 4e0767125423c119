import type { Belief } from '../base/belief.ts';
import type { Clock, Instant } from '../base/clock.ts';
import type { Deadline } from '../base/deadline.ts';
import type { Scope } from './contest.ts';
import type { Watchdog } from './watchdog.ts';

export interface BeliefListeners {
  /** Told the new end of belief at every extension, and undefined when belief is over. */
  readonly onBelief?: ((deadline: Deadline | undefined) => unknown) | undefined;
  /** Goes by the work: it is told of the belief until the work has settled. */
  readonly watchdog?: Watchdog | undefined;
}

/** The belief of a term, told to those who watch over it, and how long the work has outlived it. */
export class ToldBelief {
  readonly #belief: Belief;
  readonly #clock: Clock;
  readonly #onTrouble: Scope['onTrouble'];
  readonly #listeners: BeliefListeners;
  #hasWorkSettled = false;
  /** What was lost of it, as it was told last. */
  #toldLostMs = 0;
  /** Monotonic: when it was over, by whichever clock said so first. */
  #overAtMs = 0;
  #overrunMs = 0;

  constructor(belief: Belief, { clock, onTrouble }: Scope, listeners: BeliefListeners) {
    this.#belief = belief;
    this.#clock = clock;
    this.#onTrouble = onTrouble;
    this.#listeners = listeners;
    this.#tell();
  }

  remainingMs(): number {
    return this.#belief.remainingMs();
  }

  /** How long the work ran on after it; 0 until that has settled. */
  get overrunMs(): number {
    return this.#overrunMs;
  }

  /** @returns false when it is over: a late confirmation never revives it */
  extend(sentAt: Instant): boolean {
    if (!this.#belief.extend(sentAt)) return false;
    this.#tell();
    return true;
  }

  /** Who begins to watch over it later has not seen what our looks have. */
  tellWhatWasLost(): void {
    if (this.#belief.deadline?.lostMs !== this.#toldLostMs) this.#tell();
  }

  onWorkSettled(): void {
    const overForMs =
      this.#belief.deadline === undefined
        ? this.#clock.monotonicMs() - this.#overAtMs
        : -this.#belief.remainingMs();
    this.#overrunMs = Math.max(0, overForMs);
    this.#hasWorkSettled = true;
    this.#listeners.watchdog?.update(undefined);
  }

  end(): void {
    if (this.#belief.deadline === undefined) return;
    this.#overAtMs = this.#clock.monotonicMs() + Math.min(0, this.#belief.remainingMs());
    this.#belief.end();
    this.#tell();
  }

  #tell(): void {
    const { deadline } = this.#belief;
    this.#toldLostMs = deadline?.lostMs ?? 0;
    const { onBelief, watchdog } = this.#listeners;
    if (deadline !== undefined && !this.#hasWorkSettled) watchdog?.update(deadline);
    const trouble = (error: unknown) => this.#onTrouble('onBelief', error);
    try {
      const answer = onBelief?.(deadline);
      if (answer instanceof Promise) answer.catch(trouble);
    } catch (error) {
      trouble(error);
    }
  }
}
