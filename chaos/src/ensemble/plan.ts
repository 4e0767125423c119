import { deckOf, draw, seeded } from '../random.ts';
import type { ProcessFault } from '../zookeeper/plan.ts';

/** In how many rounds of a deck, and how long, as a part of the session timeout (default: at once). */
interface Card {
  readonly cards: number;
  readonly from?: number;
  readonly to?: number;
}

/** Shorter than the belief, longer than that, and until after a successor leads. */
const anyLength: Omit<Card, 'cards'> = { from: 0.2, to: 2.4 };

/** What happens to one who waits. */
export type WaitingFault = 'kill both' | 'freeze both' | 'withdraw' | 'delete place' | 'silence';

/** What happens to the leader. */
export type LeaderFault =
  | WaitingFault
  | 'kill supervisor'
  | 'kill guard'
  /** And the program with its group. */
  | 'kill all'
  /** The supervisor killed, and the next leader's before its program has started. */
  | 'kill next'
  | 'freeze supervisor'
  | 'freeze guard'
  /** An operator asks it to go. */
  | 'vacate'
  /** An operator deletes its place by hand while it is frozen, so it cannot notice. */
  | 'freeze and delete'
  | 'cut'
  | 'drop replies'
  /** It reaches one follower alone, and that one is parted from the others. */
  | 'strand';

/** Needs servers with a network of their own. */
export type PartingFault = 'part leader' | 'part follower' | 'deafen leader' | 'mute leader';

/** What happens to the servers, or to all connections at once. */
export type ServerFault = ProcessFault | 'cut everybody' | PartingFault;

const leaderFaults: Readonly<Record<LeaderFault, Card>> = {
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

const waitingFaults: Readonly<Record<WaitingFault, Card>> = {
  'kill both': { cards: 2 },
  'freeze both': { cards: 2, ...anyLength },
  withdraw: { cards: 1 },
  'delete place': { cards: 1 },
  silence: { cards: 2, ...anyLength },
};

const serverFaults: Readonly<Record<ServerFault, Card>> = {
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

/** Rows of a table. */
export const faultNames: readonly string[] = [
  ...Object.keys(leaderFaults),
  ...Object.keys(waitingFaults).map((name) => `waiting: ${name}`),
  ...Object.keys(serverFaults).map((name) => `servers: ${name}`),
];

const parting: readonly string[] = [
  ...(['part leader', 'part follower', 'deafen leader', 'mute leader'] satisfies PartingFault[]),
  'strand' satisfies LeaderFault,
];

export interface Strike<Fault> {
  readonly fault: Fault;
  readonly afterMs: number;
  /** In session timeouts of whoever is struck. */
  readonly length: number;
  /** 0 up to 1: whatever else has to be chosen. */
  readonly choice: number;
}

/** What a round does. All of it follows from the seed. */
export interface Round {
  /** From 1. */
  readonly number: number;
  readonly leader: Strike<LeaderFault> | undefined;
  readonly waiting: Strike<WaitingFault> | undefined;
  readonly server: Strike<ServerFault> | undefined;
  /** When a killed candidate is started again. */
  readonly restartMs: number;
}

/** As the rows of the table name them. */
export function faultsOf({ leader, waiting, server }: Round): string[] {
  return [
    ...(leader === undefined ? [] : [leader.fault]),
    ...(waiting === undefined ? [] : [`waiting: ${waiting.fault}`]),
    ...(server === undefined ? [] : [`servers: ${server.fault}`]),
  ];
}

interface Opening {
  readonly leader?: LeaderFault;
  readonly waiting?: WaitingFault;
  readonly server?: ServerFault;
  /** How long the leader's fault lasts. */
  readonly length?: number;
}

/** Rounds that every run needs, however short. */
const openings: readonly Opening[] = [
  // Whoever believes in its server still believes in it when the next one leads.
  { leader: 'strand', length: 2.4 },
  { leader: 'freeze and delete' },
  { leader: 'kill supervisor', server: 'freeze leader' },
  { waiting: 'kill both', server: 'kill follower' },
  { leader: 'freeze supervisor', length: 2.4 },
  // Its belief is over, its session is not.
  { leader: 'freeze both', length: 0.45 },
  { leader: 'withdraw', server: 'part leader' },
];

/** Endless. @param parts whether servers can be parted from each other */
export function* planRounds(seed: number, parts: boolean): Generator<Round> {
  const random = seeded(seed);
  const canBe = (fault: string) => parts || !parting.includes(fault);
  const deck = <Fault extends string>(table: Readonly<Record<Fault, Card>>) =>
    deckOf(
      Object.fromEntries(Object.entries(table).filter(([fault]) => canBe(fault))) as typeof table,
      random,
    );
  const decks = {
    leader: deck(leaderFaults),
    waiting: deck(waitingFaults),
    server: deck(serverFaults),
  };
  const strike = <Fault extends string>(
    table: Readonly<Record<Fault, Card>>,
    fault: Fault,
  ): Strike<Fault> => {
    const { from = 0, to = 0 } = table[fault];
    const afterMs = Math.round(random() * 600);
    return { fault, afterMs, length: from + random() * (to - from), choice: random() };
  };
  for (let number = 1; ; number += 1) {
    const restartMs = Math.round(random() * 500);
    const opening = openings[number - 1];
    if (opening !== undefined) {
      const { leader, waiting, server, length } = opening;
      const long = length === undefined ? {} : { length };
      yield {
        number,
        leader: leader && canBe(leader) ? { ...strike(leaderFaults, leader), ...long } : undefined,
        waiting: waiting && strike(waitingFaults, waiting),
        server: server && canBe(server) ? strike(serverFaults, server) : undefined,
        restartMs,
      };
      continue;
    }
    const [forLeader, forWaiting, forServer] = [random() < 0.8, random() < 0.35, random() < 0.5];
    const leader = forLeader ? strike(leaderFaults, draw(decks.leader)) : undefined;
    const waiting = forWaiting ? strike(waitingFaults, draw(decks.waiting)) : undefined;
    // A stranded leader needs servers that are as they were found.
    const withServer = leader === undefined || (forServer && leader.fault !== 'strand');
    const server = withServer ? strike(serverFaults, draw(decks.server)) : undefined;
    yield { number, leader, waiting, server, restartMs };
  }
}
