import type { Clock } from '@incumbent/zookeeper';

interface PlayedTimer {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that a test moves. */
export class PlayedClock implements Clock {
  nowMs = 1_000;
  readonly #timers = new Set<PlayedTimer>();

  monotonicMs(): number {
    return this.nowMs;
  }

  wallMs(): number {
    return this.nowMs;
  }

  setTimer(callback: () => void, delayMs: number): { cancel(): void } {
    const timer = { atMs: this.nowMs + delayMs, callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Lets so much time pass. All that a timer starts ends before the next one fires. */
  async pass(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    await settled();
    for (;;) {
      const [next] = [...this.#timers].sort((a, b) => a.atMs - b.atMs);
      if (next === undefined || next.atMs > endMs) break;
      this.#timers.delete(next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.callback();
      await settled();
    }
    this.nowMs = Math.max(this.nowMs, endMs);
  }
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
