/** Rounds in which the leader, one who waits and the servers are struck, on whatever store. */

import { seeded } from '@incumbent/servers';
import { deckOf, draw } from './deck.ts';

/** In how many rounds of a deck, and how long, in leases of whoever is struck (default: at once). */
export interface Card {
  readonly cards: number;
  readonly from?: number;
  readonly to?: number;
}

export type Cards<Fault extends string> = Readonly<Record<Fault, Card>>;

/** Shorter than the belief, longer than that, and until after a successor leads. */
export const anyLength: Omit<Card, 'cards'> = { from: 0.2, to: 2.4 };

export interface Strike<Fault extends string> {
  readonly fault: Fault;
  readonly afterMs: number;
  /** In leases of whoever is struck; of the longest, for servers. */
  readonly length: number;
  /** 0 up to 1: whatever else has to be chosen. */
  readonly choice: number;
}

/** The strikes of a round. All of it follows from the seed. */
export interface Round<
  Leader extends string = string,
  Waiting extends string = string,
  Server extends string = string,
> {
  /** From 1. */
  readonly number: number;
  readonly leader: Strike<Leader> | undefined;
  readonly waiting: Strike<Waiting> | undefined;
  readonly server: Strike<Server> | undefined;
  /** When a killed candidate is started again. */
  readonly restartMs: number;
}

/** A round that is not left to chance. */
export interface Opening<
  Leader extends string = string,
  Waiting extends string = string,
  Server extends string = string,
> {
  readonly leader?: Leader | undefined;
  readonly waiting?: Waiting | undefined;
  readonly server?: Server | undefined;
  /** How long, in leases. Default: as the seed has it. */
  readonly leaderLength?: number;
  readonly waitingLength?: number;
  readonly serverLength?: number;
  /** How long after the leader the servers are struck; negative: before. Default: by chance. */
  readonly lagMs?: number;
}

/** The possible faults of each target. */
export interface Faults<
  Leader extends string = string,
  Waiting extends string = string,
  Server extends string = string,
> {
  readonly leader: Cards<Leader>;
  readonly waiting: Cards<Waiting>;
  readonly server: Cards<Server>;
}

export interface Plan<Leader extends string, Waiting extends string, Server extends string> {
  readonly faults: Faults<Leader, Waiting, Server>;
  /** In which part of the rounds each of them is struck. */
  readonly shares: { readonly leader: number; readonly waiting: number; readonly server: number };
  /** Rounds that every run needs, however short. */
  readonly openings: readonly Opening<Leader, Waiting, Server>[];
}

/** As the rows of the table name them. */
export function faultsOf({ leader, waiting, server }: Round): string[] {
  return [
    ...(leader === undefined ? [] : [leader.fault]),
    ...(waiting === undefined ? [] : [`waiting: ${waiting.fault}`]),
    ...(server === undefined ? [] : [`servers: ${server.fault}`]),
  ];
}

/** Rows of a table: whatever can happen. */
export function namesOf({ leader, waiting, server }: Faults): string[] {
  const possible = (cards: Cards<string>) =>
    Object.entries(cards).flatMap(([name, card]) => (card.cards > 0 ? [name] : []));
  return [
    ...possible(leader),
    ...possible(waiting).map((name) => `waiting: ${name}`),
    ...possible(server).map((name) => `servers: ${name}`),
  ];
}

/** Endless. */
export function* drawRounds<Leader extends string, Waiting extends string, Server extends string>(
  seed: number,
  { faults, shares, openings }: Plan<Leader, Waiting, Server>,
): Generator<Round<Leader, Waiting, Server>> {
  const random = seeded(seed);
  const decks = {
    leader: deckOf(faults.leader, random),
    waiting: deckOf(faults.waiting, random),
    server: deckOf(faults.server, random),
  };
  const strike = <Fault extends string>(
    cards: Cards<Fault>,
    fault: Fault,
    length?: number,
  ): Strike<Fault> => {
    const { from = 0, to = 0 } = cards[fault];
    const afterMs = Math.round(random() * 600);
    const drawn = from + random() * (to - from);
    return { fault, afterMs, length: length ?? drawn, choice: random() };
  };
  for (let number = 1; ; number += 1) {
    const restartMs = Math.round(random() * 500);
    const opening = openings[number - 1];
    if (opening !== undefined) {
      const { leader, waiting, server, lagMs } = opening;
      const { leaderLength, waitingLength, serverLength } = opening;
      const shifted = (sign: 1 | -1) =>
        lagMs === undefined ? {} : { afterMs: Math.max(0, sign * lagMs) };
      yield {
        number,
        leader:
          leader === undefined
            ? undefined
            : { ...strike(faults.leader, leader, leaderLength), ...shifted(-1) },
        waiting: waiting === undefined ? undefined : strike(faults.waiting, waiting, waitingLength),
        server:
          server === undefined
            ? undefined
            : { ...strike(faults.server, server, serverLength), ...shifted(1) },
        restartMs,
      };
      continue;
    }
    const [forLeader, forWaiting, forServer] = [
      random() < shares.leader,
      random() < shares.waiting,
      random() < shares.server,
    ];
    const leader = forLeader ? strike(faults.leader, draw(decks.leader)) : undefined;
    const waiting = forWaiting ? strike(faults.waiting, draw(decks.waiting)) : undefined;
    // A stranded leader needs servers that are as they were found.
    const withServer = leader === undefined || (forServer && leader.fault !== 'strand');
    const server = withServer ? strike(faults.server, draw(decks.server)) : undefined;
    yield { number, leader, waiting, server, restartMs };
  }
}
