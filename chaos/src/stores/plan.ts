import type {
  Opening as AnyOpening,
  Round as AnyRound,
  Card,
  Cards,
  Faults,
} from '../harness/rounds.ts';
import { anyLength, drawRounds, namesOf } from '../harness/rounds.ts';
import type { UsualFault } from '../harness/strike-candidates.ts';

/** The faults of a waiting candidate. */
export type WaitingFault = 'kill both' | 'freeze both' | 'withdraw' | 'silence';

/** The faults of the leader. */
export type LeaderFault =
  | UsualFault
  /** An operator deletes its place by hand while it is frozen, so it cannot notice. */
  | 'freeze and delete'
  /** It reaches one server alone, and that one is cut off from the others. */
  | 'strand';

const leaderFaults: Cards<LeaderFault> = {
  'kill supervisor': { cards: 2 },
  'kill guard': { cards: 1 },
  'kill both': { cards: 2 },
  'kill all': { cards: 1 },
  'freeze supervisor': { cards: 2, ...anyLength },
  'freeze guard': { cards: 1, ...anyLength },
  'freeze both': { cards: 2, ...anyLength },
  withdraw: { cards: 2 },
  vacate: { cards: 1 },
  cut: { cards: 1, to: 0.4 },
  silence: { cards: 2, ...anyLength },
  'drop replies': { cards: 2, from: 0.2, to: 1.2 },
  'freeze and delete': { cards: 2, from: 0.1, to: 0.6 },
  strand: { cards: 3, from: 1.2, to: 2.6 },
};

const waitingFaults: Cards<WaitingFault> = {
  'kill both': { cards: 2 },
  'freeze both': { cards: 2, ...anyLength },
  withdraw: { cards: 1 },
  silence: { cards: 2, ...anyLength },
};

export type Round = AnyRound<LeaderFault, WaitingFault>;
export type Opening = AnyOpening<LeaderFault, WaitingFault>;

export interface Scope {
  readonly serverFaults: Readonly<Record<string, Card>>;
  readonly openings: readonly Opening[];
  /** Whether a server can be cut off from the others. */
  readonly strands: boolean;
  /** Whether a place can be deleted by hand. */
  readonly evicts: boolean;
}

/** The faults that are possible there. */
function faultsIn({ serverFaults, strands, evicts }: Scope): Faults<LeaderFault, WaitingFault> {
  const possibly = (fault: LeaderFault, isPossible: boolean) => ({
    [fault]: { ...leaderFaults[fault], ...(isPossible ? {} : { cards: 0 }) },
  });
  return {
    leader: {
      ...leaderFaults,
      ...possibly('strand', strands),
      ...possibly('freeze and delete', evicts),
    },
    waiting: waitingFaults,
    server: serverFaults,
  };
}

/** Rows of a table. */
export function faultNames(scope: Scope): string[] {
  return namesOf(faultsIn(scope));
}

/** Endless. */
export function planRounds(seed: number, scope: Scope): Generator<Round> {
  return drawRounds(seed, {
    faults: faultsIn(scope),
    shares: { leader: 0.7, waiting: 0.35, server: 0.6 },
    openings: scope.openings,
  });
}
