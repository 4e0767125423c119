import process from 'node:process';

/** The clock of `sentAt` and of state changes. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Asks until the answer is true. @returns whether it became so within the bound */
export async function until(
  boundMs: number,
  ask: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const endMs = monotonicMs() + boundMs;
  for (;;) {
    if (await ask()) return true;
    if (monotonicMs() > endMs) return false;
    await pause(10);
  }
}

const stepMs = 10;
/** A timer is always a little late. */
const ordinaryMs = 15;
const usuallyKeptMs = 120_000;

/**
 * When this process could not run, because the machine was busy. Nobody can be told anything
 * meanwhile: a promise about time is one about the time in which the process runs.
 */
export class Stalls {
  #stalls: { readonly fromMs: number; readonly toMs: number }[] = [];
  #lastMs: number = monotonicMs();
  readonly #keptMs: number;
  readonly #timer: ReturnType<typeof setInterval>;

  /** @param keptMs for how long it can be asked about them */
  constructor(keptMs: number = usuallyKeptMs) {
    this.#keptMs = keptMs;
    this.#timer = setInterval(() => this.#look(), stepMs);
  }

  /** How long this process did not run between two instants. */
  ms(fromMs: number, toMs: number): number {
    this.#look();
    let sum = 0;
    for (const stall of this.#stalls) {
      sum += Math.max(0, Math.min(toMs, stall.toMs) - Math.max(fromMs, stall.fromMs));
    }
    return sum;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const nowMs = monotonicMs();
    if (nowMs - this.#lastMs > stepMs + ordinaryMs) {
      this.#stalls.push({ fromMs: this.#lastMs + stepMs, toMs: nowMs });
      this.#stalls = this.#stalls.filter(({ toMs }) => toMs > nowMs - this.#keptMs);
    }
    this.#lastMs = nowMs;
  }
}
