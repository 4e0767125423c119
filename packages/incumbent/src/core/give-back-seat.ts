import { checkElectionName } from '../base/candidate.ts';
import type { Clock } from '../base/clock.ts';
import { systemClock } from '../base/clock.ts';
import { uniqueId } from '../base/identity.ts';
import type { TimingOptions } from '../base/timing.ts';
import { resolveTiming } from '../base/timing.ts';
import type { Backend } from './contest.ts';
import type { SeatIdentity } from './seat-identity.ts';
import { seatName } from './seats.ts';

export interface GiveBackSeatOptions extends TimingOptions {
  /** The name of the election. */
  readonly name: string;
  readonly backend: Backend;
  readonly seat: SeatIdentity;
  /** The work is dead as well: the term ended clean. False: the next leader runs its fence hooks. */
  readonly hasWorkEnded: boolean;
  readonly signal: AbortSignal;
  /** Time source, for tests. Default: the clocks of the machine. */
  readonly clock?: Clock;
  /** Told of attempts that failed. */
  readonly onTrouble?: (what: string, error: unknown) => void;
}

/**
 * Gives back the seat of a leader that is dead. **Only for a process that has seen that death**: a
 * leader that is only frozen, or cut off, still believes.
 * @returns false when the record does not name that term any more. Undefined: this store has no
 * such write, so the seat runs out
 */
export async function giveBackSeat(options: GiveBackSeatOptions): Promise<boolean | undefined> {
  const { name, backend, seat, hasWorkEnded, signal, onTrouble = () => {} } = options;
  const opened = backend.open({
    election: seatName(checkElectionName(name), seat.seat ?? 1),
    clock: options.clock ?? systemClock,
    timing: resolveTiming(options, backend.limits),
    random: Math.random,
    uniqueId,
    onTrouble,
  });
  try {
    const { id, incarnation, token, nonces } = seat;
    const leader = { id, incarnation, token: BigInt(token), nonces, hasWorkEnded };
    return await opened.giveBackFor?.(leader, signal);
  } finally {
    await opened.close();
  }
}
