import type { Round as AnyRound, Cards, Opening } from '../harness/rounds.ts';
import { anyLength, drawRounds, namesOf } from '../harness/rounds.ts';
import type { UsualFault } from '../harness/strike-candidates.ts';
import type { ProcessFault } from '../zookeeper/plan.ts';

/** The faults of a waiting candidate. */
export type WaitingFault = 'kill both' | 'freeze both' | 'withdraw' | 'delete place' | 'silence';

/** The faults of the leader. */
export type LeaderFault =
  | UsualFault
  /** The supervisor killed, and the next leader's before its program has started. */
  | 'kill next'
  | 'delete place'
  /** An operator deletes its place by hand while it is frozen, so it cannot notice. */
  | 'freeze and delete'
  /** It reaches one follower alone, and that one is parted from the others. */
  | 'strand';

/** Needs servers with a network of their own. */
export type PartingFault = 'part leader' | 'part follower' | 'deafen leader' | 'mute leader';

/** The faults of the servers, or of all connections at once. */
export type ServerFault = ProcessFault | 'cut everybody' | PartingFault;

const leaderFaults: Cards<LeaderFault> = {
  'kill supervisor': { cards: 2 },
  'kill guard': { cards: 1 },
  'kill both': { cards: 2 },
  'kill all': { cards: 1 },
  'kill next': { cards: 1 },
  'freeze supervisor': { cards: 2, ...anyLength },
  'freeze guard': { cards: 1, ...anyLength },
  'freeze both': { cards: 2, ...anyLength },
  withdraw: { cards: 2 },
  vacate: { cards: 1 },
  'delete place': { cards: 1 },
  'freeze and delete': { cards: 2, from: 0.1, to: 0.6 },
  cut: { cards: 1, to: 0.4 },
  silence: { cards: 2, ...anyLength },
  'drop replies': { cards: 1, from: 0.2, to: 1.2 },
  strand: { cards: 3, from: 1.2, to: 2.6 },
};

const waitingFaults: Cards<WaitingFault> = {
  'kill both': { cards: 2 },
  'freeze both': { cards: 2, ...anyLength },
  withdraw: { cards: 1 },
  'delete place': { cards: 1 },
  silence: { cards: 2, ...anyLength },
};

const serverFaults: Cards<ServerFault> = {
  'kill leader': { cards: 3, from: 0.1, to: 0.7 },
  'kill follower': { cards: 1, from: 0.1, to: 0.7 },
  'freeze leader': { cards: 3, from: 0.2, to: 1.5 },
  'freeze follower': { cards: 1, from: 0.2, to: 1.5 },
  'stop leader': { cards: 1, to: 0.2 },
  'lose quorum': { cards: 2, from: 0.1, to: 0.7 },
  'rolling restart': { cards: 1 },
  'cut everybody': { cards: 1, to: 0.3 },
  'part leader': { cards: 3, from: 0.3, to: 1.8 },
  'part follower': { cards: 1, from: 0.3, to: 1.8 },
  'deafen leader': { cards: 1, from: 0.3, to: 1.8 },
  'mute leader': { cards: 1, from: 0.3, to: 1.8 },
};

const faults = { leader: leaderFaults, waiting: waitingFaults, server: serverFaults };

/** Rows of a table. */
export const faultNames: readonly string[] = namesOf(faults);

const parting: readonly string[] = [
  ...(['part leader', 'part follower', 'deafen leader', 'mute leader'] satisfies PartingFault[]),
  'strand' satisfies LeaderFault,
];

export type Round = AnyRound<LeaderFault, WaitingFault, ServerFault>;

/** Rounds that every run needs, however short. */
const openings: readonly Opening<LeaderFault, WaitingFault, ServerFault>[] = [
  // The stranded leader still believes in its server when the next one leads.
  { leader: 'strand', leaderLength: 2.4 },
  { leader: 'freeze and delete' },
  { leader: 'kill supervisor', server: 'freeze leader' },
  { waiting: 'kill both', server: 'kill follower' },
  { leader: 'freeze supervisor', leaderLength: 2.4 },
  // Its belief is over, its session is not.
  { leader: 'freeze both', leaderLength: 0.45 },
  { leader: 'withdraw', server: 'part leader' },
];

/** Endless. @param parts whether servers can be parted from each other */
export function planRounds(seed: number, parts: boolean): Generator<Round> {
  const canBe = (fault: string) => parts || !parting.includes(fault);
  const onlyPossible = <Fault extends string>(cards: Cards<Fault>) =>
    Object.fromEntries(Object.entries(cards).filter(([fault]) => canBe(fault))) as Cards<Fault>;
  return drawRounds(seed, {
    faults: { ...faults, leader: onlyPossible(leaderFaults), server: onlyPossible(serverFaults) },
    shares: { leader: 0.8, waiting: 0.35, server: 0.5 },
    openings: openings.map(({ leader, server, ...others }) => ({
      ...others,
      ...(leader !== undefined && canBe(leader) ? { leader } : {}),
      ...(server !== undefined && canBe(server) ? { server } : {}),
    })),
  });
}
