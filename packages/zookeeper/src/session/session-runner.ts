import {
  hasWatches,
  isFinal,
  isGranted,
  isIntroduced,
  isTrying,
  nextSessionAt,
} from './session-machine.ts';
import type { SessionAt, SessionEvent, ShellEffect } from './session-states.ts';

interface Shell {
  carryOut(effect: ShellEffect): void;
  /** All that has happened was acted on. */
  acted(): void;
}

/**
 * Runs the machine of a session: one event after the other, and all that is to be done for one before the next. What
 * happens meanwhile waits, for listeners make things happen, too.
 */
export class SessionRunner {
  readonly #usesSasl: boolean;
  readonly #shell: Shell;
  #at: SessionAt;
  /** Asked at every reply. */
  #isGranted = false;
  #hasWatches = false;
  /** What has happened and was not acted on yet. */
  readonly #events: SessionEvent[] = [];
  #isActing = false;

  constructor(first: SessionAt, usesSasl: boolean, shell: Shell) {
    this.#at = first;
    this.#usesSasl = usesSasl;
    this.#shell = shell;
  }

  get at(): SessionAt {
    return this.#at;
  }

  get isFinal(): boolean {
    return isFinal(this.#at);
  }

  /** The server of the connection has granted a session. */
  get isGranted(): boolean {
    return this.#isGranted;
  }

  /** The connection has all our watches. */
  get hasWatches(): boolean {
    return this.#hasWatches;
  }

  /** The server of the connection was told who we are and what we watch. */
  get isIntroduced(): boolean {
    return isIntroduced(this.#at);
  }

  /** A server is being tried, and does not serve yet. */
  get isTrying(): boolean {
    return isTrying(this.#at);
  }

  /** The end of the session is known, and waits for its turn. */
  get isOverNext(): boolean {
    if (this.#events.length === 0 || this.isFinal) return false;
    return this.#events.some(({ on }) => on === 'over');
  }

  /** Acts on what has happened: after what is being acted on already. */
  happen(event: SessionEvent): void {
    this.act(() => this.#events.push(event));
  }

  /** Acts on what happens in `first`, when that is done. */
  act(first: () => void): void {
    if (this.#isActing) {
      first();
      return;
    }
    this.#isActing = true;
    let failure: { readonly error: unknown } | undefined;
    try {
      first();
      for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) {
        const { next, effects } = nextSessionAt(this.#at, event, this.#usesSasl);
        this.#at = next;
        this.#isGranted = isGranted(next);
        this.#hasWatches = hasWatches(next);
        for (const effect of effects) {
          // What follows is done all the same: a client must not be left half closed.
          try {
            if (effect.do === 'go-on') this.#events.push(effect.event);
            else this.#shell.carryOut(effect);
          } catch (error) {
            failure ??= { error };
          }
        }
      }
      this.#shell.acted();
    } finally {
      this.#isActing = false;
    }
    if (failure !== undefined) throw failure.error;
  }
}
