import { deckOf, draw, seeded } from '../random.ts';

/** In how many rounds of a deck, and how long, in leases (default: at once). */
export interface Card {
  readonly cards: number;
  readonly from?: number;
  readonly to?: number;
}

/** Shorter than the belief, longer than that, and until after a successor leads. */
const anyLength: Omit<Card, 'cards'> = { from: 0.2, to: 2.4 };

/** What happens to one who waits. */
export type WaitingFault = 'kill both' | 'freeze both' | 'withdraw' | 'silence';

/** What happens to the leader. */
export type LeaderFault =
  | WaitingFault
  | 'kill supervisor'
  | 'kill guard'
  /** And the program with its group. */
  | 'kill all'
  | 'freeze supervisor'
  | 'freeze guard'
  /** An operator asks it to go. */
  | 'vacate'
  | 'cut'
  | 'drop replies'
  /** An operator deletes its place by hand while it is frozen, so it cannot notice. */
  | 'freeze and delete'
  /** It reaches one server alone, and that one is cut off from the others. */
  | 'strand';

const leaderFaults: Readonly<Record<LeaderFault, Card>> = {
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

const waitingFaults: Readonly<Record<WaitingFault, Card>> = {
  'kill both': { cards: 2 },
  'freeze both': { cards: 2, ...anyLength },
  withdraw: { cards: 1 },
  silence: { cards: 2, ...anyLength },
};

export interface Strike<Fault> {
  readonly fault: Fault;
  readonly afterMs: number;
  /** In leases of whoever is struck; of the longest, for servers. */
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
  readonly server: Strike<string> | undefined;
  /** When a killed candidate is started again. */
  readonly restartMs: number;
}

export interface Opening {
  readonly leader?: LeaderFault;
  readonly waiting?: WaitingFault;
  readonly server?: string;
  /** How long, in leases. Default: as the seed has it. */
  readonly leaderLength?: number;
  readonly serverLength?: number;
  /** How long after the leader the servers are struck; negative: before. Default: by chance. */
  readonly lagMs?: number;
}

export interface Scope {
  readonly serverFaults: Readonly<Record<string, Card>>;
  readonly openings: readonly Opening[];
  /** Whether a server can be cut off from the others. */
  readonly strands: boolean;
  /** Whether a place can be deleted by hand. */
  readonly evicts: boolean;
}

/** What can happen to a leader there. */
function leaderFaultsOf({ strands, evicts }: Scope): Readonly<Record<LeaderFault, Card>> {
  const never: Card = { cards: 0 };
  return {
    ...leaderFaults,
    ...(strands ? {} : { strand: never }),
    ...(evicts ? {} : { 'freeze and delete': never }),
  };
}

/** As the rows of the table name them. */
export function faultsOf({ leader, waiting, server }: Round): string[] {
  return [
    ...(leader === undefined ? [] : [leader.fault]),
    ...(waiting === undefined ? [] : [`waiting: ${waiting.fault}`]),
    ...(server === undefined ? [] : [`servers: ${server.fault}`]),
  ];
}

/** Rows of a table. */
export function faultNames(scope: Scope): string[] {
  const { serverFaults } = scope;
  const leader = Object.entries(leaderFaultsOf(scope)).filter(([, { cards }]) => cards > 0);
  return [
    ...leader.map(([name]) => name),
    ...Object.keys(waitingFaults).map((name) => `waiting: ${name}`),
    ...Object.keys(serverFaults).map((name) => `servers: ${name}`),
  ];
}

/** Endless. */
export function* planRounds(seed: number, scope: Scope): Generator<Round> {
  const { serverFaults, openings } = scope;
  const random = seeded(seed);
  const decks = {
    leader: deckOf(leaderFaultsOf(scope), random),
    waiting: deckOf(waitingFaults, random),
    server: deckOf(serverFaults, random),
  };
  const strike = <Fault extends string>(
    table: Readonly<Record<string, Card>>,
    fault: Fault,
    length?: number,
  ): Strike<Fault> => {
    const { from = 0, to = 0 } = table[fault] as Card;
    const afterMs = Math.round(random() * 600);
    const drawn = from + random() * (to - from);
    return { fault, afterMs, length: length ?? drawn, choice: random() };
  };
  for (let number = 1; ; number += 1) {
    const restartMs = Math.round(random() * 500);
    const opening = openings[number - 1];
    if (opening !== undefined) {
      const { leader, waiting, server, lagMs } = opening;
      const after = (ms: number | undefined) =>
        ms === undefined ? {} : { afterMs: Math.max(0, ms) };
      yield {
        number,
        leader: leader && {
          ...strike(leaderFaults, leader, opening.leaderLength),
          ...after(lagMs === undefined ? undefined : -lagMs),
        },
        waiting: waiting && strike(waitingFaults, waiting),
        server:
          server === undefined
            ? undefined
            : { ...strike(serverFaults, server, opening.serverLength), ...after(lagMs) },
        restartMs,
      };
      continue;
    }
    const [forLeader, forWaiting, forServer] = [random() < 0.7, random() < 0.35, random() < 0.6];
    const leader = forLeader ? strike(leaderFaults, draw(decks.leader)) : undefined;
    const waiting = forWaiting ? strike(waitingFaults, draw(decks.waiting)) : undefined;
    // A stranded leader needs servers that are as they were found.
    const withServer = leader === undefined || (forServer && leader.fault !== 'strand');
    const server = withServer ? strike(serverFaults, draw(decks.server)) : undefined;
    yield { number, leader, waiting, server, restartMs };
  }
}
