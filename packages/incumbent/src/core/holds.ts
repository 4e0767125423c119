/** Seats that stay closed although nobody leads, and how operators open them: for every mechanism. */
import { RefusedError } from '../base/errors.ts';
import { describeNotElected } from '../base/not-elected.ts';
import type { Reservation, TermSummary } from '../record/record.ts';

/** What `vacate` has lifted: the seat would have stayed closed until then. */
export interface LiftedHold {
  /** Whose work was done, or who gave the seat up; undefined where the record does not say. */
  readonly by?: string;
  /** Who alone could have taken the seat; undefined: nobody. */
  readonly for?: string;
  readonly untilUnixMs: number;
}

/** The hold of a leader whose work is done; undefined when there is none, or it is over. */
export function holdOf(
  by: string,
  held: { readonly untilUnixMs: number } | undefined,
  wallMs: number,
): (LiftedHold & { readonly by: string }) | undefined {
  if (held === undefined || held.untilUnixMs <= wallMs) return undefined;
  return { by, untilUnixMs: held.untilUnixMs };
}

/** What a leader has left behind that gave the seat up: for somebody, or for nobody. */
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

/** @param doubt why nobody can say that the holder is dead */
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
