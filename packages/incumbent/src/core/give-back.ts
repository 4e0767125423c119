import { LeftBehindError, OperationTimeoutError } from '../base/errors.ts';
import { takesSeatAway } from '../base/reasons.ts';
import type { Timing } from '../base/timing.ts';
import { bounded } from '../base/wait.ts';
import type { Contest, Scope, Seat, SeatEnd } from './contest.ts';

/** How long the last attempts to give a seat back may take, in operation timeouts. */
const releaseTimeouts = 3;

/** How long a seat that is handed over is reserved for the named candidate, where it is woken. */
const longestReservationMs = 15_000;

/**
 * The candidate that alone may take a seat that was given back, and for how long. Without an id, no
 * candidate may.
 */
export type Reservation = Pick<SeatEnd, 'reservedFor' | 'reserveMs'>;

export function reservationFor(
  id: string,
  { leaseMs }: Timing,
  { standAsideMs }: Pick<Contest<unknown>, 'standAsideMs'>,
): Reservation {
  // Where no candidate is woken, the named one must be able to look once in that time.
  const reserveMs = Math.max(Math.min(leaseMs, longestReservationMs), standAsideMs);
  return { reservedFor: id, reserveMs };
}

/**
 * How a term gives its seat back or leaves it to run out, within a bound whatever the store does.
 */
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

  /** The error that kept the seat from being given back. */
  get error(): unknown {
    return this.#error;
  }

  reserve(reservation: Reservation): void {
    this.#reservation = reservation;
  }

  /**
   * No candidate may take the seat before then, by its wall clock, nor for longer than `mostMs`.
   */
  holdUntil(unixMs: number, mostMs: number): void {
    this.#heldUntilUnixMs = unixMs;
    this.#heldMostMs = mostMs;
  }

  /**
   * Never rejects.
   * @returns true when the seat was given back as clean
   */
  async release(
    end: Pick<SeatEnd, 'reason' | 'hasLed' | 'fromUnixMs' | 'unfenced'>,
  ): Promise<boolean> {
    if (takesSeatAway(end.reason)) {
      await this.abandon();
      return false;
    }
    const toUnixMs = this.#scope.clock.wallMs();
    const heldMs = Math.min(this.#heldMostMs, this.#heldUntilUnixMs - toUnixMs);
    // A hold comes before a hand-over: the named candidate has to wait as well.
    const kept = heldMs > 0 ? { reserveMs: heldMs } : this.#reservation;
    const released = await this.#inTurn(() =>
      this.#bounded('releasing', (signal) =>
        this.#seat.release({ ...end, toUnixMs, ...kept }, signal),
      ),
    );
    return released === true;
  }

  /** Leaves the seat to run out. Never rejects. */
  async abandon(): Promise<void> {
    await this.#bounded('leaving the seat', (signal) => this.#seat.abandon(signal));
  }

  /**
   * A process that ends gives all its seats back in one moment. Each operation has its time, so they
   * must not wait for each other in the client. A seat that has waited long enough goes all the same:
   * its successors wait, too.
   * @param giveBack never rejects
   */
  async #inTurn<T>(giveBack: () => Promise<T>): Promise<T> {
    const { clock, timing, turns } = this.#scope;
    if (turns === undefined) return giveBack();
    const late = new AbortController();
    const timer = clock.setTimer(() => late.abort(), timing.operationTimeoutMs);
    try {
      const begin = () => {
        timer.cancel();
        return giveBack();
      };
      return await turns.take(begin, late.signal, true);
    } catch {
      return giveBack();
    }
  }

  /** Uses a fresh signal: the signal that asked us to stop must not cut this short. */
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
      // An operation that heeds its signal reports what it leaves behind. One that does not is
      // given up later.
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
