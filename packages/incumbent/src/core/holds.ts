/**
 * Seats that stay closed although no candidate leads, and how operators open them. For every
 * mechanism.
 */
import { RefusedError } from '../base/errors.ts';
import { describeNotElected } from '../base/not-elected.ts';
import type { Reservation, TermSummary } from '../record/record.ts';

/** A hold or reservation that `vacate` has lifted. The seat would have stayed closed until then. */
export interface LiftedHold {
  /**
   * The candidate whose work was done, or that gave the seat up. Undefined where the record does
   * not say.
   */
  readonly by?: string;
  /** The candidate that alone could have taken the seat. Undefined: none could. */
  readonly for?: string;
  /** The time until which the seat would have stayed closed, in ms since 1970. */
  readonly untilUnixMs: number;
}

/** The hold of a leader whose work is done. Undefined when there is none, or it is over. */
export function holdOf(
  by: string,
  held: { readonly untilUnixMs: number } | undefined,
  wallMs: number,
): (LiftedHold & { readonly by: string }) | undefined {
  if (held === undefined || held.untilUnixMs <= wallMs) return undefined;
  return { by, untilUnixMs: held.untilUnixMs };
}

/** The reservation that a leader left when it gave the seat up: for a candidate, or for none. */
export function reservationOf(
  reservation: Reservation | undefined,
  history: readonly TermSummary[],
  wallMs: number,
): LiftedHold | undefined {
  if (reservation === undefined || reservation.untilUnixMs <= wallMs) return undefined;
  const by = history.at(-1)?.id;
  return {
    ...(by === undefined ? {} : { by }),
    ...(reservation.for === undefined ? {} : { for: reservation.for }),
    untilUnixMs: reservation.untilUnixMs,
  };
}

/** @param doubt why the holder cannot be called dead */
export function holdRefusal(
  { by, untilUnixMs }: LiftedHold & { readonly by: string },
  doubt: string,
  wallMs: number,
): RefusedError {
  const state = describeNotElected({ kind: 'held', by, untilUnixMs }, wallMs);
  return new RefusedError(
    `${state}, and may be alive: ${doubt}. With --force the hold is lifted all the same`,
  );
}
