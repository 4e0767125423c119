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
  /** Called after all events were acted on. */
  acted(): void;
}

/**
 * Runs the state machine of a session: one event after the other, and all effects of one event
 * before the next. Listeners may cause events meanwhile, and those wait.
 */
export class SessionRunner {
  readonly #usesSasl: boolean;
  readonly #shell: Shell;
  #at: SessionAt;
  /** Kept in a field, because every reply asks for it. */
  #isGranted = false;
  #hasWatches = false;
  /** Events that were not acted on yet. */
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

  /** Whether the server of the connection has granted a session. */
  get isGranted(): boolean {
    return this.#isGranted;
  }

  /** Whether the connection has all our watches. */
  get hasWatches(): boolean {
    return this.#hasWatches;
  }

  /** Whether the server of the connection got our credentials and watches. */
  get isIntroduced(): boolean {
    return isIntroduced(this.#at);
  }

  /** Whether a server is being tried, and does not serve yet. */
  get isTrying(): boolean {
    return isTrying(this.#at);
  }

  /** Whether the end of the session is known, and waits for its turn. */
  get isOverNext(): boolean {
    return !this.isFinal && this.#events.some(({ on }) => on === 'over');
  }

  /** Acts on an event, after those that wait already. */
  happen(event: SessionEvent): void {
    this.act(() => this.#events.push(event));
  }

  /** Runs `first`, and then acts on the events that it has caused. */
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
          // The other effects are carried out all the same: a client must not stay half closed.
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
