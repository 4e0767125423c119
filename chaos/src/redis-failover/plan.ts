import { seeded } from '@incumbent/servers';
import { deckOf, draw } from '../harness/deck.ts';

/** The parts of a move of the primary, in their order. */
const moveSteps = ['revoke', 'fence', 'choose', 'promote', 'redirect', 'publish'] as const;
export type ManagerStep = `${'before' | 'after'} ${(typeof moveSteps)[number]}`;

const steps: readonly ManagerStep[] = moveSteps.flatMap((step) => [
  `before ${step}` as const,
  `after ${step}` as const,
]);

/** In how many strikes of a deck, and how long, in ms. */
interface Card {
  readonly cards: number;
  readonly from?: number;
  readonly to?: number;
}

const decks = {
  primary: {
    /** Back with its data when another one has taken over, or before: alone, and writable. */
    kill: { cards: 4, to: 4_000 },
    /** Back with its data before anybody has noticed. */
    restart: { cards: 1, to: 300 },
    /** Back with its data while whoever moves it is at a step, and waits there for a while. */
    'kill, back at': { cards: 2, to: 1_500 },
    /** Back with nothing before anybody has noticed. */
    'restart empty': { cards: 1, to: 300 },
    /** Back with nothing, when another one has taken over. */
    'kill, back empty': { cards: 2, to: 1_500 },
    freeze: { cards: 5, from: 1_000, to: 5_000 },
    /** Managers do not reach it, clients do. */
    hide: { cards: 3, from: 1_500, to: 4_000 },
    /** A failover that somebody asks for: to the best replica, or to a certain one. */
    'fail over': { cards: 3 },
    'fail over to': { cards: 2 },
    /** An operator promotes a replica, and may have the other one follow it; the primary comes back. */
    'kill, promoted by hand': { cards: 2, from: 300, to: 4_000 },
    /** The same, while the primary lives. */
    'promoted by hand': { cards: 1 },
  },
  replica: {
    kill: { cards: 2, to: 3_000 },
    'kill, back empty': { cards: 1, to: 3_000 },
    freeze: { cards: 3, from: 1_000, to: 4_000 },
    /** It runs and answers, and its primary does not let it in. */
    unlink: { cards: 3, from: 500, to: 4_000 },
    /** The same, and the other one, too. */
    'unlink both': { cards: 1, from: 500, to: 3_000 },
    hide: { cards: 1, from: 1_500, to: 3_000 },
    /** It has another password, and nobody was told. */
    'other password': { cards: 2, from: 1_500, to: 4_000 },
  },
  manager: {
    kill: { cards: 2, to: 3_000 },
    freeze: { cards: 2, from: 500, to: 5_000 },
    /** At a step, until another one has moved the primary, or for the length. */
    'kill at': { cards: 4, to: 2_000 },
    'freeze at': { cards: 6, from: 3_000, to: 7_000 },
    /** It takes its time there. */
    'slow at': { cards: 2, from: 200, to: 1_500 },
    /** No word to or from ZooKeeper. */
    offline: { cards: 2, from: 500, to: 5_000 },
    'offline at': { cards: 3, from: 500, to: 5_000 },
    /**
     * Its commands to the Redis servers are held up, and arrive when another manager has moved the
     * primary.
     */
    'held up at': { cards: 3, from: 3_000, to: 7_000 },
    /** Its place in the queue is deleted by hand while it waits at a step, and it goes on later. */
    'evict at': { cards: 2, from: 3_000, to: 6_000 },
    /** It does not reach the primary: one of three managers, or two. */
    blind: { cards: 2, from: 1_500, to: 4_000 },
    'blind two': { cards: 1, from: 1_500, to: 4_000 },
    /** The elected one does not reach a replica, and the others do. */
    'blind to a replica': { cards: 2, from: 1_500, to: 4_000 },
    'kill all': { cards: 1, to: 1_000 },
  },
  client: {
    offline: { cards: 2, from: 200, to: 4_000 },
    /** From when the move begins. */
    'offline at': { cards: 3, from: 500, to: 5_000 },
    freeze: { cards: 2, from: 300, to: 4_000 },
    'freeze at': { cards: 2, from: 300, to: 4_000 },
  },
  server: {
    restart: { cards: 2, to: 1_000 },
    freeze: { cards: 1, from: 500, to: 1_500 },
  },
} as const;

export type Target = keyof typeof decks;
export type FaultOf<Where extends Target> = Extract<keyof (typeof decks)[Where], string>;

/** Faults that strike whoever is at a step of a move. */
export type AtStep<Fault extends string> = Extract<Fault, `${string} at`>;

export function isAtStep<Fault extends string>(fault: Fault): fault is AtStep<Fault> {
  return fault.endsWith(' at');
}

export interface Strike<Fault extends string = string> {
  readonly fault: Fault;
  readonly afterMs: number;
  /** At most, where `untilMovedMs` is given. */
  readonly forMs: number;
  /** It lasts until so long after another term has begun. */
  readonly untilMovedMs?: number;
  /** 0 up to 1: whatever else has to be chosen. */
  readonly choice: number;
  /** Where `isAtStep`. */
  readonly step: ManagerStep;
}

export type Strikes = { readonly [Where in Target]?: Strike<FaultOf<Where>> };

/** The strikes of a round on a set. All of it follows from the seed. */
export interface Round {
  /** From 1. */
  readonly number: number;
  readonly strikes: Strikes;
}

/** In which part of the rounds each of them is struck. */
const shares: Readonly<Record<Target, number>> = {
  primary: 0.85,
  replica: 0.35,
  manager: 0.65,
  client: 0.45,
  server: 0.1,
};
const targets = Object.keys(decks) as readonly Target[];

type Opening = {
  readonly [Where in Target]?: Partial<Strike<FaultOf<Where>>> &
    Pick<Strike<FaultOf<Where>>, 'fault'>;
};

const atOnce = { afterMs: 0 };

/**
 * Rounds that every run needs, however short: each of the forms that `--broken` knows is found in
 * one of them. A primary with `min-replicas-to-write` refuses writes when its replicas have gone.
 * So the writes that it still takes then are seen without that option, and the writes that must not
 * be lost are seen with it.
 */
const openings: { readonly withMinReplicas: Opening[]; readonly without: Opening[] } = {
  withMinReplicas: [
    // A replica that lags behind is not promoted.
    {
      primary: { fault: 'kill', afterMs: 1_500, ...untilMoved(500) },
      replica: { fault: 'unlink', ...atOnce, ...untilMoved(1_000), choice: 0.1 },
    },
    // As below; nothing is to be seen of it when its successor chooses the same one.
    {
      primary: { fault: 'kill', ...atOnce, ...untilMoved(500) },
      manager: { fault: 'held up at', step: 'before promote', forMs: 15_000 },
    },
    // Nor does he when the elected manager is the only one who does not see a better one.
    {
      primary: { fault: 'kill', afterMs: 1_500, ...untilMoved(500) },
      replica: { fault: 'unlink', ...atOnce, ...untilMoved(1_000), choice: 0.1 },
      manager: { fault: 'blind to a replica', afterMs: 1_200, ...untilMoved(500), choice: 0.9 },
    },
    // A client that does not hear of the move writes to a primary that answers.
    {
      primary: { fault: 'fail over', ...atOnce },
      manager: { fault: 'slow at', step: 'before redirect', forMs: 400 },
      client: { fault: 'offline at', step: 'before revoke', ...untilMoved(500) },
    },
    {
      primary: { fault: 'kill', ...atOnce, ...untilMoved(500) },
      manager: { fault: 'evict at', step: 'before publish', forMs: 10_000 },
    },
    // A replica that lags behind is not promoted either when the primary comes back in mid-move,
    // and the other replica copies it again.
    {
      primary: { fault: 'kill, back at', afterMs: 1_500, step: 'before choose', forMs: 1_200 },
      replica: { fault: 'unlink', ...atOnce, ...untilMoved(1_000), choice: 0.1 },
    },
  ],
  without: [
    // A client whose view still holds reaches a primary that the managers do not.
    {
      primary: { fault: 'hide', ...atOnce, ...untilMoved(1_000), choice: 0 },
      client: { fault: 'offline at', step: 'before revoke', ...untilMoved(1_500) },
    },
    // A write on its way to a primary is answered when the primary thaws, behind the next term.
    {
      primary: { fault: 'freeze', ...atOnce, ...untilMoved(1_000) },
      client: { fault: 'offline at', step: 'before revoke', ...untilMoved(2_000) },
    },
    // Orders of a manager that nobody has elected any more arrive.
    {
      primary: { fault: 'kill', ...atOnce, ...untilMoved(500) },
      manager: { fault: 'held up at', step: 'before promote', forMs: 15_000 },
    },
    {
      primary: { fault: 'freeze', ...atOnce, ...untilMoved(500) },
      manager: { fault: 'freeze at', step: 'before promote', forMs: 15_000 },
    },
  ],
};

function untilMoved(untilMovedMs: number): Pick<Strike, 'forMs' | 'untilMovedMs'> {
  return { forMs: 15_000, untilMovedMs };
}

/** Endless. */
export function* drawRounds(seed: number, hasMinReplicas: boolean): Generator<Round> {
  const random = seeded(seed);
  const deals: Readonly<Record<Target, Generator<string, never>>> = {
    primary: deckOf(decks.primary, random),
    replica: deckOf(decks.replica, random),
    manager: deckOf(decks.manager, random),
    client: deckOf(decks.client, random),
    server: deckOf(decks.server, random),
  };
  const strike = (where: Target, fault: string, given: Partial<Strike> = {}): Strike => {
    const { from = 0, to = 0 } = (decks[where] as Readonly<Record<string, Card>>)[fault] as Card;
    return {
      fault,
      afterMs: Math.round(random() * 800),
      forMs: Math.round(from + random() * (to - from)),
      choice: random(),
      step: steps[Math.floor(random() * steps.length)] as ManagerStep,
      ...given,
    };
  };
  for (let number = 1; ; number += 1) {
    const opening = openings[hasMinReplicas ? 'withMinReplicas' : 'without'][number - 1];
    const drawn: Partial<Record<Target, Strike>> = {};
    if (opening === undefined) {
      const chosen = targets.filter((where) => random() < shares[where]);
      for (const where of chosen.length === 0 ? (['primary'] as const) : chosen) {
        drawn[where] = strike(where, draw<string>(deals[where]));
      }
      // Steps are those of a move: there must be one.
      const waits = [drawn.manager, drawn.client].some((each) => each && isAtStep(each.fault));
      if (waits) drawn.primary ??= strike('primary', 'fail over');
    } else {
      for (const where of targets) {
        const given = opening[where];
        if (given !== undefined) drawn[where] = strike(where, given.fault, given);
      }
    }
    yield { number, strikes: drawn as Strikes };
  }
}

/** As the rows of the table name them. */
export function faultsOf({ strikes }: Round): readonly string[] {
  return targets.flatMap((where) => {
    const strike = strikes[where];
    return strike === undefined ? [] : [`${where}: ${strike.fault}`];
  });
}

/** Rows of a table: whatever can happen. */
export const faultNames: readonly string[] = targets.flatMap((where) =>
  Object.keys(decks[where]).map((fault) => `${where}: ${fault}`),
);

/** In words. */
export function describeRound({ strikes }: Round): string {
  return targets
    .flatMap((where) => {
      const strike = strikes[where];
      if (strike === undefined) return [];
      const { fault, step, forMs, untilMovedMs } = strike;
      const at = isAtStep(fault) ? ` ${step}` : '';
      const long = untilMovedMs === undefined ? ` ${(forMs / 1000).toFixed(1)} s` : '';
      return [`${where}: ${fault}${at}${forMs === 0 ? '' : long}`];
    })
    .join(', ');
}
