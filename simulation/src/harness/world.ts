import { Heap } from './heap.ts';
import type { Host } from './host.ts';
import type { Random } from './random.ts';
import type { Trace } from './trace.ts';

/** A promise of the library that a schedule has broken. */
export interface Violation {
  readonly guarantee: string;
  readonly message: string;
  readonly atMs: number;
}

/** Something that happens at a time. @returns true when code of the library may have run */
type Happening = () => boolean;

/**
 * Virtual time, in real milliseconds since the start: the time that no clock of the simulation
 * shows exactly. One event at a time, each followed by everything it causes.
 */
export class World {
  readonly random: Random;
  readonly trace: Trace;
  readonly hosts: Host[] = [];
  nowMs = 0;
  violation: Violation | undefined;
  /** While true, clocks show the world's time even to a host that has run ahead of it. */
  looking = false;
  /** Guarantees that are not judged. */
  ignored: readonly string[] = [];
  /** Called before and after every event. */
  check: () => void = () => {};
  readonly #queue = new Heap<Happening>();

  constructor(random: Random, trace: Trace) {
    this.random = random;
    this.trace = trace;
  }

  at(atMs: number, happening: Happening): void {
    this.#queue.push(Math.max(atMs, this.nowMs), happening);
  }

  /** The first violation is the one that is reported. */
  fail(guarantee: string, message: string): void {
    if (this.violation !== undefined || this.ignored.includes(guarantee)) return;
    this.violation = { guarantee, message, atMs: this.nowMs };
    this.trace.add(this.nowMs, '!', guarantee, () => message);
  }

  /** Lets time pass until `untilMs`, or until `done` (asked after every event). */
  run(untilMs: number, done: () => boolean = () => false): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn = () => {
        try {
          for (;;) {
            this.look();
            if (this.violation !== undefined || done()) return resolve();
            const nextMs = this.#nextAtMs();
            if (nextMs > untilMs) {
              this.nowMs = Math.max(this.nowMs, untilMs);
              this.look();
              return resolve();
            }
            // A turn of the event loop: every microtask, every nextTick, and the unhandled
            // rejections are reported before the next event.
            if (this.#step(nextMs)) return void setImmediate(turn);
          }
        } catch (error) {
          reject(error);
        }
      };
      setImmediate(turn);
    });
  }

  #nextAtMs(): number {
    let nextMs = this.#queue.firstKey;
    for (const host of this.hosts) nextMs = Math.min(nextMs, host.nextTimerAtMs());
    return nextMs;
  }

  #step(atMs: number): boolean {
    if (atMs > this.nowMs) {
      this.nowMs = atMs;
      this.look();
    }
    for (const host of this.hosts) {
      if (host.nextTimerAtMs() <= this.nowMs) return host.runNextTimer();
    }
    return this.#queue.pop()?.() ?? false;
  }

  /** Checks everything, by the world's time. */
  look(): void {
    this.looking = true;
    this.check();
    this.looking = false;
  }
}
