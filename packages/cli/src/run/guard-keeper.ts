import type { Deadline } from 'incumbent';
import type { SeatIdentity } from 'incumbent/backend';
import type { GuardOptions } from '../guard/index.ts';
import { Guard } from '../guard/index.ts';
import type { GuardProcess } from '../guard/spawn.ts';

/**
 * The guard of one `run`: started before it is needed, so that a takeover does not wait for it, and
 * again after it was lost. It always knows the present belief.
 */
export class GuardKeeper {
  readonly #options: GuardOptions;
  #guard: Promise<Guard>;
  #running: Guard | undefined;
  #belief: Deadline | undefined;
  #seat: SeatIdentity | undefined;
  /**
   * The term of a guard that was lost or left alone. Its program may live on, and the next guard
   * does not know of it.
   */
  #forfeited: SeatIdentity | undefined;

  /** @param early the process of the first guard */
  constructor(options: GuardOptions, early?: GuardProcess) {
    this.#options = options;
    this.#guard = this.#start(early);
  }

  /** The guard that runs. @throws GuardError when none can be started */
  async get(): Promise<Guard> {
    if (this.#running === undefined) {
      // A start that failed may succeed now.
      await this.#guard.catch(() => {});
      if (this.#running === undefined) this.#guard = this.#start();
    }
    return this.#guard;
  }

  /** Belief was extended, or found to be shorter; undefined: it is over. */
  belief(deadline: Deadline | undefined): void {
    this.#belief = deadline;
    this.#tell(this.#running);
  }

  /** The seat that is given back if we die; undefined: there is none. */
  seat(seat: SeatIdentity | undefined): void {
    this.#seat = seat;
    this.#tellSeat(this.#running);
  }

  /**
   * Leaves the guard alone with a program that does not die of KILL, and starts another one. The old
   * one goes on killing, and ends with its program.
   */
  replace(): void {
    const old = this.#running;
    this.#running = undefined;
    this.#forfeited = this.#seat;
    this.#guard = this.#start();
    old?.abandon();
  }

  async close(): Promise<void> {
    const guard = await this.#guard.catch(() => undefined);
    await guard?.close();
  }

  #start(early?: GuardProcess): Promise<Guard> {
    const starting = this.#startOne(early);
    // The caller that asks for the guard gets the failure. This handler only marks it as handled.
    starting.catch(() => {});
    return starting;
  }

  async #startOne(early: GuardProcess | undefined): Promise<Guard> {
    const guard = await Guard.start(this.#options, undefined, early);
    this.#running = guard;
    this.#tell(guard);
    void guard.lost.then(() => {
      if (this.#running !== guard) return;
      this.#running = undefined;
      this.#forfeited = this.#seat;
    });
    return guard;
  }

  #tell(guard: Guard | undefined): void {
    guard?.belief(this.#belief);
    this.#tellSeat(guard);
  }

  #tellSeat(guard: Guard | undefined): void {
    // Two seats may have the same token.
    const isForfeited =
      this.#seat?.token === this.#forfeited?.token && this.#seat?.seat === this.#forfeited?.seat;
    if (this.#seat === undefined || !isForfeited) guard?.seat(this.#seat);
  }
}
