import type { Scheduler } from './scheduler.ts';

/**
 * One direction of a way. Items that are sent while it is held arrive when it is let go, as TCP has
 * it.
 */
export class Wire {
  /** Drawn anew for each message. */
  latencyMs: () => number;
  readonly #pumps = new Set<() => void>();
  #isHeld = false;

  constructor(latencyMs: () => number) {
    this.latencyMs = latencyMs;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Nothing comes through, and nobody is told. */
  hold(): void {
    this.#isHeld = true;
  }

  letGo(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    for (const pump of [...this.#pumps]) pump();
  }

  /** Calls `pump` whenever the wire is let go, until `forget`. */
  listen(pump: () => void): void {
    this.#pumps.add(pump);
  }

  forget(pump: () => void): void {
    this.#pumps.delete(pump);
  }
}

/** The way of connections from one place to another: the caller makes it, and breaks it. */
export class Link {
  /** From the one who connects. */
  readonly forth: Wire;
  readonly back: Wire;
  /** Connects are refused, as if nobody listened there. */
  refuses = false;
  readonly #breakers = new Set<() => void>();

  constructor(latencyMs: () => number) {
    this.forth = new Wire(latencyMs);
    this.back = new Wire(latencyMs);
  }

  hold(): void {
    this.forth.hold();
    this.back.hold();
  }

  letGo(): void {
    this.forth.letGo();
    this.back.letGo();
  }

  /** Both ends of every connection see it end now; what was on its way is lost. */
  reset(): void {
    for (const breakIt of [...this.#breakers]) breakIt();
  }

  /** @internal of connections on this way */
  onReset(breakIt: () => void): void {
    this.#breakers.add(breakIt);
  }

  /** @internal */
  offReset(breakIt: () => void): void {
    this.#breakers.delete(breakIt);
  }
}

/** One direction of one connection, in order. */
export class Pipe<Item> {
  readonly #scheduler: Scheduler;
  readonly #wire: Wire;
  readonly #deliver: (item: Item) => void;
  readonly #queue: { readonly item: Item; dueMs: number }[] = [];
  readonly #pump = () => this.#letGo();
  #lastDueMs = 0;
  #isArmed = false;
  #isListening = false;

  constructor(scheduler: Scheduler, wire: Wire, deliver: (item: Item) => void) {
    this.#scheduler = scheduler;
    this.#wire = wire;
    this.#deliver = deliver;
  }

  push(item: Item): void {
    const dueMs = Math.max(this.#lastDueMs, this.#scheduler.now() + this.#wire.latencyMs());
    this.#lastDueMs = dueMs;
    this.#queue.push({ item, dueMs });
    this.#arm();
  }

  /** Everything on its way is lost. */
  clear(): void {
    this.#queue.length = 0;
  }

  #arm(): void {
    const [first] = this.#queue;
    if (first === undefined || this.#isArmed) return;
    if (this.#wire.isHeld) {
      if (!this.#isListening) this.#wire.listen(this.#pump);
      this.#isListening = true;
      return;
    }
    this.#isArmed = true;
    this.#scheduler.after(Math.max(0, first.dueMs - this.#scheduler.now()), () => {
      this.#isArmed = false;
      this.#run();
    });
  }

  #run(): void {
    const nowMs = this.#scheduler.now();
    while (!this.#wire.isHeld) {
      const [first] = this.#queue;
      if (first === undefined || first.dueMs > nowMs) break;
      this.#queue.shift();
      this.#deliver(first.item);
    }
    this.#arm();
  }

  #letGo(): void {
    this.#wire.forget(this.#pump);
    this.#isListening = false;
    const dueMs = this.#scheduler.now() + this.#wire.latencyMs();
    for (const waiting of this.#queue) waiting.dueMs = Math.max(waiting.dueMs, dueMs);
    this.#lastDueMs = Math.max(this.#lastDueMs, dueMs);
    this.#arm();
  }
}
