import { InvalidOptionError } from '../../base/errors.ts';
import type { ActorProcess } from '../../core/contest.ts';
import type { Actor } from '../../record/record.ts';
import type { Machine } from './this-machine.ts';
import { thisMachine } from './this-machine.ts';

/**
 * Describes processes so that another process of this machine can prove them dead.
 *
 * Promised: a process that is proved gone runs no more and will not come back. Not promised: that
 * every death can be proved. Doubt counts as "no". Another container (pid or time namespace),
 * another boot, and a zombie with living threads leave a doubt. So does a process id that is in use
 * again, while its start time cannot be read.
 *
 * Not covered: a child that has left the process group and the session, and is no actor of its own.
 * On a system that does not show sessions, a child that has left the group is not covered.
 */
export class ProcessProof {
  readonly #lookAround: () => Machine;
  #machine: Machine;

  constructor(lookAround: () => Machine = thisMachine) {
    this.#lookAround = lookAround;
    this.#machine = lookAround();
  }

  describe({ pid, group, session }: ActorProcess): Actor {
    if (!isId(pid)) throw new InvalidOptionError(`${pid} is no process id`);
    // Group 1 cannot be asked for: kill(-1) means every process.
    if (group !== undefined && !(isId(group) && group > 1)) {
      throw new InvalidOptionError(`${group} is no process group that can be watched`);
    }
    // Session 0 is the kernel's own.
    if (session !== undefined && !isId(session)) {
      throw new InvalidOptionError(`${session} is no session that can be watched`);
    }
    // A process may be put to sleep and restored in another container, or after a boot (CRIU).
    this.#machine = this.#lookAround();
    const { boot, pidNamespace, timeNamespace, hasSessions } = this.#machine;
    const start = this.#machine.process(pid)?.startTime;
    return {
      pid,
      ...(start === undefined ? {} : { start }),
      ...(group === undefined ? {} : { group }),
      ...(session === undefined || !hasSessions ? {} : { session }),
      boot,
      pidNamespace,
      timeNamespace,
    };
  }

  /**
   * Cheap while a process lives: a few system calls for each actor. After that, for groups that are
   * not empty and for sessions, it walks through all processes. An empty list proves nothing.
   */
  provesGone(actors: readonly Actor[]): boolean {
    if (actors.length === 0 || !actors.every((actor) => this.#isDead(actor))) return false;
    // Counts only if we are still where we looked around last: see `describe`.
    this.#machine = this.#lookAround();
    return actors.every((actor) => this.#isDead(actor)) && this.#areGroupsDead(actors);
  }

  /** True only if there is no process with this number now. */
  isAbsent(pid: number): boolean {
    return isId(pid) && this.#machine.isAbsent(pid);
  }

  /**
   * True when the actor is of an earlier boot, provided that this machine made it. Namespaces of
   * one kernel differ. So an equal one under another boot id is no container that runs beside us.
   */
  isOfEarlierBoot(actor: Actor): boolean {
    const { boot, bootIsExact, pidNamespace } = this.#machine;
    return (
      bootIsExact &&
      boot !== '' &&
      pidNamespace !== '' &&
      actor['pidNamespace'] === pidNamespace &&
      typeof actor['boot'] === 'string' &&
      actor['boot'] !== '' &&
      actor['boot'] !== boot
    );
  }

  #isDead(actor: Actor): boolean {
    const own = this.#machine;
    const { pid, start } = actor;
    if (own.boot === '' || actor['boot'] !== own.boot) return false;
    if (own.pidNamespace === '' || actor['pidNamespace'] !== own.pidNamespace) return false;
    if (actor['timeNamespace'] !== own.timeNamespace) return false;
    if (!isId(pid)) return false;
    if (!own.isAbsent(pid)) {
      if (typeof start !== 'string' || start === '') return false;
      const present = own.process(pid);
      if (present === undefined) return false;
      if (present.startTime === start && !present.isSpent) return false;
    }
    return true;
  }

  #areGroupsDead(actors: readonly Actor[]): boolean {
    const groups: number[] = [];
    const sessions: number[] = [];
    for (const { group, session } of actors) {
      if (group !== undefined) {
        if (!isId(group) || group <= 1) return false;
        if (!this.#machine.isAbsent(-group)) groups.push(group);
      }
      if (session !== undefined) {
        if (!isId(session)) return false;
        sessions.push(session);
      }
    }
    return groups.length + sessions.length === 0 || this.#machine.areSpent(groups, sessions);
  }
}

/**
 * True for a process id as the kernel has them. kill(2) would take other numbers
 * for something else.
 */
function isId(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 2 ** 31;
}
