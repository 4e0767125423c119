import { LeftBehindError, OperationTimeoutError } from '../base/errors.ts';
import { takesSeatAway } from '../base/reasons.ts';
import type { Timing } from '../base/timing.ts';
import { bounded } from '../base/wait.ts';
import type { Contest, Scope, Seat, SeatEnd } from './contest.ts';

/** How long the last attempts to give a seat back may take, in operation timeouts. */
const releaseTimeouts = 3;

/** How long a seat that is handed over stays closed to everybody but the one named, if it is woken. */
const longestReservationMs = 15_000;

/** Who alone may take a seat that was given back, and for how long; of nobody is said who. */
export type Reservation = Pick<SeatEnd, 'reservedFor' | 'reserveMs'>;

export function reservationFor(
  id: string,
  { leaseMs }: Timing,
  { standAsideMs }: Pick<Contest<unknown>, 'standAsideMs'>,
): Reservation {
  // Where nobody is woken, it is for the one named to look once while the seat waits for it.
  const reserveMs = Math.max(Math.min(leaseMs, longestReservationMs), standAsideMs);
  return { reservedFor: id, reserveMs };
}

/** How a term gives its seat back, or leaves it to run out: within a bound, whatever the store does. */
export class GiveBack<Guard> {
  readonly #seat: Seat<Guard>;
  readonly #scope: Scope;
  #reservation: Reservation = {};
  #heldUntilUnixMs = 0;
  #heldMostMs = 0;
  #error: unknown;

  constructor(seat: Seat<Guard>, scope: Scope) {
    this.#seat = seat;
    this.#scope = scope;
  }

  /** Why the seat could not be given back. */
  get error(): unknown {
    return this.#error;
  }

  reserve(reservation: Reservation): void {
    this.#reservation = reservation;
  }

  /** Nobody may take it before then, by their wall clocks, nor for longer than `mostMs`. */
  holdUntil(unixMs: number, mostMs: number): void {
    this.#heldUntilUnixMs = unixMs;
    this.#heldMostMs = mostMs;
  }

  /** @returns whether it was given back as clean. Never rejects */
  async release(
    end: Pick<SeatEnd, 'reason' | 'hasLed' | 'fromUnixMs' | 'unfenced'>,
  ): Promise<boolean> {
    if (takesSeatAway(end.reason)) {
      await this.abandon();
      return false;
    }
    const toUnixMs = this.#scope.clock.wallMs();
    const heldMs = Math.min(this.#heldMostMs, this.#heldUntilUnixMs - toUnixMs);
    // A seat that is held for nobody is not handed to anybody either.
    const kept = heldMs > 0 ? { reserveMs: heldMs } : this.#reservation;
    const released = await this.#bounded('releasing', (signal) =>
      this.#seat.release({ ...end, toUnixMs, ...kept }, signal),
    );
    return released === true;
  }

  /** Leaves it to run out. Never rejects. */
  async abandon(): Promise<void> {
    await this.#bounded('leaving the seat', (signal) => this.#seat.abandon(signal));
  }

  /** With a fresh signal: the one that asked us to stop must not cut this short. */
  async #bounded<T>(
    what: string,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    const { clock, timing, onTrouble } = this.#scope;
    const timeoutMs = releaseTimeouts * timing.operationTimeoutMs;
    const stop = new AbortController();
    const timer = clock.setTimer(
      () => stop.abort(new OperationTimeoutError(what, timeoutMs)),
      timeoutMs,
    );
    try {
      // Whoever heeds its signal says what is left behind; who does not is not waited for either.
      const never = new AbortController().signal;
      const mostMs = timeoutMs + timing.operationTimeoutMs;
      return await bounded(clock, what, mostMs, never, () => operation(stop.signal));
    } catch (error) {
      onTrouble(what, error);
      if (error instanceof LeftBehindError) this.#error = error;
      return undefined;
    } finally {
      timer.cancel();
    }
  }
}
