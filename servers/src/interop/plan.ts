import { seeded, shuffle } from '../random.ts';
import type { Layout } from './program.ts';

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
 * The strikes that members of a layout are made for. A program that races for one node looks at
 * nothing but its own estimate, and may for ever take its own node for another's. So it is only
 * asked to go, and killed.
 */
export function strikesOf(layout: Layout): readonly Strike[] {
  return layout === 'node' ? ['resign', 'kill'] : strikes;
}

/**
 * The first ten in the order of the deck: with four members, whose order in the queue stays, each
 * resigns and each is killed. The others as the seed has it.
 */
export function planChanges(
  count: number,
  seed: number,
  allowed: readonly Strike[] = strikes,
): readonly Change[] {
  const random = seeded(seed);
  const cards = deck.filter((strike) => allowed.includes(strike));
  const drawn: Strike[] = [...cards];
  while (drawn.length < count) drawn.push(...shuffle(cards, random));
  return drawn.slice(0, count).map((strike) => ({
    strike,
    afterMs: Math.round(random() * longestWorkMs),
  }));
}
