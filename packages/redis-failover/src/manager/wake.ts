import type { Clock } from '@incumbent/zookeeper';
import { systemClock } from '../clock.ts';

/** Ends the wait of one waiter. A call that comes while there is none ends the next wait. */
export class Wake {
  readonly #clock: Clock;
  #called = false;
  #end: () => void = () => {};

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  call(): void {
    this.#called = true;
    this.#end();
  }

  /** Resolves at a call, after `forMs`, or when `signal` aborts. */
  async wait(forMs: number, signal: AbortSignal): Promise<void> {
    if (!this.#called && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const end = () => {
          timer.cancel();
          signal.removeEventListener('abort', end);
          resolve();
        };
        const timer = this.#clock.setTimer(end, forMs);
        signal.addEventListener('abort', end);
        this.#end = end;
      });
    }
    this.#called = false;
  }
}
