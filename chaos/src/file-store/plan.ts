import { seeded, shuffle } from '@incumbent/servers';
import type { Timing } from 'incumbent';

/** The faults of the leader, and in how many of twenty rounds each comes. */
const deck = {
  'kill supervisor': 3,
  'kill guard': 2,
  /** Supervisor and guard together: only the watchers inside the program's group are left. */
  'kill both': 3,
  /** Both, and the program with its group. */
  'kill all': 1,
  'freeze supervisor': 3,
  'freeze guard': 1,
  'freeze both': 2,
  /** The supervisor is killed while its guard is frozen: again only the watchers are left. */
  'kill and freeze': 1,
  /** An operator asks it to go. */
  resign: 2,
  /** The supervisor is killed, and the next leader's (or both) before its program has started. */
  'kill next': 2,
} as const;

export type Fault = keyof typeof deck;
export const faults = Object.keys(deck) as readonly Fault[];

/**
 * The fault of a round, and its times. All of it follows from the seed, whatever the candidates
 * then do.
 */
export interface Round {
  /** From 1. */
  readonly number: number;
  readonly fault: Fault;
  /** How long the leader has worked when it happens. */
  readonly afterMs: number;
  /** `freeze …` and `kill and freeze` only. */
  readonly freezeMs: number;
  /** `kill next` only: how long after the report that it leads, and whether with its guard. */
  readonly nextAfterMs: number;
  readonly nextBoth: boolean;
  /** When the killed is started again. */
  readonly restartMs: number;
}

export function planRounds(count: number, seed: number, timing: Timing): Round[] {
  const random = seeded(seed);
  const between = (fromMs: number, toMs: number) => Math.round(fromMs + random() * (toMs - fromMs));
  const rounds: Round[] = [];
  while (rounds.length < count) {
    const cards = faults.flatMap((fault) => Array<Fault>(deck[fault]).fill(fault));
    for (const fault of shuffle(cards, random).slice(0, count - rounds.length)) {
      rounds.push({
        number: rounds.length + 1,
        fault,
        // Every moment between two renewals, and the first of a term, which differ.
        afterMs: between(0, 2 * timing.renewEveryMs),
        freezeMs: between(0.5 * timing.leaseMs, 3 * timing.leaseMs),
        nextAfterMs: between(0, 80),
        nextBoth: random() < 0.5,
        restartMs: between(0, 500),
      });
    }
  }
  return rounds;
}
