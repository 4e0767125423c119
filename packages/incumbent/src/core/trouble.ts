/** Trouble that no caller waits for: a store that is away, a user's hook that throws. */
import { channel } from 'node:diagnostics_channel';
import type { Clock } from '../base/clock.ts';
import { formatDuration } from '../base/duration.ts';
import { textOf } from '../base/thrown.ts';
import type { Backend } from './contest.ts';
import { publish } from './diagnostics.ts';

/** Trouble that no caller waits for. `what` names the attempt in words, `error` is its failure. */
export interface Trouble {
  /** The attempt, in words, such as "keeping a term". */
  readonly what: string;
  readonly error: unknown;
}

/**
 * The code of the one warning in a process whose store does not answer, and that listens to
 * nothing.
 */
export const storeAwayCode = 'INCUMBENT_STORE_AWAY';

const troubles = channel('incumbent:trouble');
/** Stores that were warned of. One warning in a process, however many elections are on a store. */
const warned = new Set<string>();

interface TroubleSource {
  readonly election: string;
  readonly candidate: string;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly listener: ((trouble: Trouble) => unknown) | undefined;
}

/** Reports trouble to listeners. Without a listener, it warns of a store that stays away. */
export class TroubleTeller {
  readonly #source: TroubleSource;
  /** The time since which no operation was answered. */
  #silent: { readonly sinceMs: number; readonly sinceUnixMs: number } | undefined;

  constructor(source: TroubleSource) {
    this.#source = source;
  }

  /** An operation of the store was answered, or was not. */
  readonly onAnswer = (isAnswered: boolean): void => {
    if (isAnswered) {
      this.#silent = undefined;
      return;
    }
    const { clock } = this.#source;
    this.#silent ??= { sinceMs: clock.monotonicMs(), sinceUnixMs: clock.wallMs() };
  };

  readonly tell = (what: string, error: unknown): void => {
    const { election, candidate, listener } = this.#source;
    publish('incumbent:trouble', { election, candidate }, { what, error });
    this.onAnswer(false);
    if (listener === undefined) {
      if (!troubles.hasSubscribers) this.#warn(what, error);
      return;
    }
    try {
      const answer = listener({ what, error });
      // A failure of the listener is its own affair.
      if (answer instanceof Promise) answer.catch(() => {});
    } catch {
      // As above. No listener is left to tell.
    }
  };

  /**
   * Uses no timer, which would keep the process alive. Code that needs the store asks again anyway.
   */
  #warn(what: string, error: unknown): void {
    const { election, backend, clock, leaseMs } = this.#source;
    const store = `${backend.kind} ${backend.description}`;
    const silent = this.#silent;
    if (silent === undefined || warned.has(store)) return;
    const forMs = clock.monotonicMs() - silent.sinceMs;
    if (forMs < leaseMs) return;
    warned.add(store);
    process.emitWarning(
      `election "${election}": the store (${backend.description}) has not answered since ` +
        `${new Date(silent.sinceUnixMs).toISOString()}, for ${formatDuration(forMs)}. ` +
        `The last error, ${what}: ${textOf(error)}. ` +
        'Pass `onTrouble` to createElection to be told of each; this warning is not repeated.',
      { type: 'IncumbentWarning', code: storeAwayCode },
    );
  }
}
