import type { Belief } from '../base/belief.ts';
import type { Clock, Instant } from '../base/clock.ts';
import type { Deadline } from '../base/deadline.ts';
import type { Scope } from './contest.ts';
import type { Watchdog } from './watchdog.ts';

export interface BeliefListeners {
  /**
   * Called with the new end of belief at every extension, and with undefined when belief is over.
   */
  readonly onBelief?: ((deadline: Deadline | undefined) => unknown) | undefined;
  /** Told of the belief until the work has settled. */
  readonly watchdog?: Watchdog | undefined;
}

/** The belief of a term. Tells listeners of it, and measures how long the work has outlived it. */
export class ToldBelief {
  readonly #belief: Belief;
  readonly #clock: Clock;
  readonly #onTrouble: Scope['onTrouble'];
  readonly #listeners: BeliefListeners;
  #hasWorkSettled = false;
  /** The `lostMs` that the listeners were told last. */
  #toldLostMs = 0;
  /** When belief was over, on the monotonic clock, by the clock that said so first. */
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

  /** How long the work ran on after belief was over, in ms. 0 until the work has settled. */
  get overrunMs(): number {
    return this.#overrunMs;
  }

  /** @returns false when belief is over: a late confirmation never revives it */
  extend(sentAt: Instant): boolean {
    if (!this.#belief.extend(sentAt)) return false;
    this.#tell();
    return true;
  }

  /** A listener that begins to watch later has not seen what our looks have found lost. */
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
