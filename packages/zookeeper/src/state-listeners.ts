import { describe } from './arguments.ts';
import type { Clock } from './clock.ts';
import { publish } from './diagnostics.ts';
import { InvalidArgumentError } from './errors.ts';
import { EventBuffer } from './event-buffer.ts';
import type { StoppableIterator } from './iterate.ts';
import { orStopped, stoppable } from './iterate.ts';
import type { Session } from './session/session.ts';
import type { StateChange } from './state.ts';

/**
 * Listeners for changes of a client's state. All listeners hear of one change before any hears of
 * the next.
 */
export class StateListeners {
  /** The client's number, for diagnostics. */
  readonly #number: number;
  readonly #listeners: Set<(change: StateChange) => void> = new Set();
  /** The changes that listeners have to hear of. The first is being told. */
  readonly #changes: StateChange[] = [];

  constructor(number: number) {
    this.#number = number;
  }

  /** @returns stops it */
  add(listener: (change: StateChange) => void): () => void {
    if (typeof listener !== 'function') {
      throw new InvalidArgumentError(`onState takes a function, not ${describe(listener)}`);
    }
    // A function that is added twice is called twice.
    const own = (change: StateChange) => listener(change);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Gives the present state at the first `next`, and then every change. */
  iterate(
    session: Session,
    clock: Clock,
    signal: AbortSignal | undefined,
  ): StoppableIterator<StateChange> {
    const begin = () => {
      const buffer = new EventBuffer<StateChange>(1_000, (changes) => changes.slice(1));
      const state = session.lastTold;
      const { info } = session;
      const atMs = clock.monotonicMs();
      buffer.push({ state, previous: state, atMs, session: info, error: undefined });
      return { buffer, stopListening: this.add((change) => buffer.push(change)) };
    };
    return stoppable(signal, async function* (stop) {
      const { buffer, stopListening } = begin();
      try {
        for (;;) {
          const change = await orStopped(buffer.next(), stop);
          if (change === undefined) return;
          yield change;
          if (change.state === 'closed' || change.state === 'auth-failed') return;
        }
      } finally {
        stopListening();
      }
    });
  }

  /**
   * Tells listeners of a change. A listener may cause another change, which waits until all have
   * heard of this one.
   */
  tell(change: StateChange): void {
    this.#changes.push(change);
    if (this.#changes.length > 1) return;
    for (let next = this.#changes[0]; next !== undefined; next = this.#changes[0]) {
      for (const listener of [...this.#listeners]) {
        try {
          listener(next);
        } catch (error) {
          publish('incumbent:zookeeper:trouble', this.#number, {
            what: 'a state listener threw',
            error,
          });
        }
      }
      this.#changes.shift();
    }
  }
}
