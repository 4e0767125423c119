import { seeded, shuffle } from '../random.ts';

/**
 * The faults that strike the leader. As soon as another one leads, a frozen one goes on, and one
 * whose network was silent can be heard again.
 */
export const strikes = ['resign', 'kill', 'freeze', 'silence'] as const;
export type Strike = (typeof strikes)[number];

export interface Change {
  readonly strike: Strike;
  /** How long the leader has worked when it happens. */
  readonly afterMs: number;
}

const deck: readonly Strike[] = [
  ...Array<Strike>(4).fill('resign'),
  ...Array<Strike>(4).fill('kill'),
  'freeze',
  'silence',
];
const longestWorkMs = 100;

/**
 * The first ten in the order of the deck: with four members, whose order in the queue stays, each
 * resigns and each is killed. The others as the seed has it.
 */
export function planChanges(count: number, seed: number): readonly Change[] {
  const random = seeded(seed);
  const strikes: Strike[] = [...deck];
  while (strikes.length < count) strikes.push(...shuffle(deck, random));
  return strikes.slice(0, count).map((strike) => ({
    strike,
    afterMs: Math.round(random() * longestWorkMs),
  }));
}
