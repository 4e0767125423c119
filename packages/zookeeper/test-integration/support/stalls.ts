import { monotonicMs } from './waiting.ts';

const stepMs = 5;
/** A timer is always a little late. */
const ordinaryMs = 15;

/**
 * Measures when this process could not run, because the machine was busy or the process was stopped.
 * A client cannot act meanwhile, nor be told anything: what it promises about time, it promises of
 * the time in which it runs (and `client.state` is judged when it is read). So a bound on a duration
 * is compared with the duration less the stalls in it; nothing is tried again.
 */
export class Stalls implements AsyncDisposable {
  readonly #stalls: { readonly fromMs: number; readonly toMs: number }[] = [];
  readonly #timer: ReturnType<typeof setInterval>;

  constructor() {
    let lastMs = monotonicMs();
    this.#timer = setInterval(() => {
      const nowMs = monotonicMs();
      if (nowMs - lastMs > stepMs + ordinaryMs) {
        this.#stalls.push({ fromMs: lastMs + stepMs, toMs: nowMs });
      }
      lastMs = nowMs;
    }, stepMs);
  }

  /** How long this process ran between two instants. */
  async ranMs(fromMs: number, toMs: number): Promise<number> {
    // A stall that ended just now is known after the next step.
    await new Promise((resolve) => setTimeout(resolve, 2 * stepMs));
    let ms = toMs - fromMs;
    for (const stall of this.#stalls) {
      ms -= Math.max(0, Math.min(toMs, stall.toMs) - Math.max(fromMs, stall.fromMs));
    }
    return ms;
  }

  [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    return Promise.resolve();
  }
}
