import type { CandidateProcess } from '@incumbent/cli/trial';
import type { TestEnsemble, TestProxy } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';
import type { Fleet, Recruit } from './fleet.ts';

/** One part to play: who has it changes, its way to the servers and its timing stay. */
export interface Seat {
  readonly leaseMs: number;
  readonly stubborn: boolean;
  /** In front of the servers, in their order. */
  readonly proxies: readonly TestProxy[];
}

/** The candidates and their parts. */
export class Crew {
  readonly seats: readonly Seat[];
  readonly fleet: Fleet;
  readonly #storeOf: (seat: Seat) => string;
  readonly #seats = new Map<string, Seat>();
  /** Candidates that are being struck: none is struck twice at a time. */
  readonly #busy = new Set<string>();
  #recruits = 0;

  /** @param storeOf where whoever has this part finds the store; asked anew at every start */
  constructor(seats: readonly Seat[], fleet: Fleet, storeOf: (seat: Seat) => string) {
    this.seats = seats;
    this.fleet = fleet;
    this.#storeOf = storeOf;
  }

  /** A new candidate for a part. */
  recruit(seat: Seat): Recruit {
    this.#recruits += 1;
    const id = `c${this.#recruits}`;
    this.#seats.set(id, seat);
    const storeOf = this.#storeOf;
    return {
      id,
      stubborn: seat.stubborn,
      lease: `${seat.leaseMs}ms`,
      get store() {
        return storeOf(seat);
      },
    };
  }

  seatOf(candidate: CandidateProcess): Seat {
    const seat = this.#seats.get(candidate.id);
    if (seat === undefined) throw new Error(`${candidate.id} has no part`);
    return seat;
  }

  /** Those who can be struck. */
  get free(): readonly CandidateProcess[] {
    return [...this.fleet.candidates.values()].filter((each) => !this.#busy.has(each.id));
  }

  isFree(candidate: CandidateProcess): boolean {
    return !this.#busy.has(candidate.id);
  }

  /** Nobody else strikes it until `act` has ended. */
  async alone(candidate: CandidateProcess, act: () => Promise<void>): Promise<void> {
    this.#busy.add(candidate.id);
    try {
      await act();
    } finally {
      this.#busy.delete(candidate.id);
    }
  }
}

export async function takeSeats(
  ensemble: TestEnsemble,
  count: number,
  leasesMs: readonly number[],
): Promise<Seat[]> {
  return Promise.all(
    Array.from({ length: count }, async (_none, index) => ({
      leaseMs: leasesMs[index % leasesMs.length] as number,
      stubborn: index % 2 === 1,
      proxies: await Promise.all(ensemble.members.map((member) => startProxy(member))),
    })),
  );
}
