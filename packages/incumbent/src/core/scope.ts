/** The tools of one election, which the core hands to a mechanism and its store. */
import type { Clock } from '../base/clock.ts';
import type { Timing } from '../base/timing.ts';
import type { Turns } from './turns.ts';

/** Handed to a mechanism by the core. */
export interface Scope {
  readonly election: string;
  readonly clock: Clock;
  readonly timing: Timing;
  /** A number from 0 to 1, without 1, for jitter. */
  readonly random: () => number;
  /** An id that is unique for ever, for nonces. */
  readonly uniqueId: () => string;
  /** Reports trouble that no caller waits for. It goes to diagnostics. */
  readonly onTrouble: (what: string, error: unknown) => void;
  /**
   * Reports whether the store answered an operation. The store may be away while no caller waits
   * for it.
   */
  readonly onAnswer?: (isAnswered: boolean) => void;
  /** True: at its first use, a store makes the things that `init` would make. */
  readonly makesMissing?: boolean;
  /** Bounds how many candidates of one backend ask for a seat at once. Left out: no bound. */
  readonly turns?: Pick<Turns, 'take'>;
  /** Of how many seats this election is one. Left out: it stands for itself. */
  readonly seats?: number;
}

/** A process of this machine that acts for a term. */
export interface ActorProcess {
  /** The process id, as this machine's kernel numbers it. */
  readonly pid: number;
  /** A process group. It must be empty as well before the actor counts as dead. */
  readonly group?: number;
  /**
   * A session. None of its processes may be alive, in whatever group, before the actor counts as
   * dead. Used on Linux only: other systems do not show the members of a session.
   */
  readonly session?: number;
}
