/** Faults dealt like cards, so that each comes often enough. */
import { shuffle } from '@incumbent/servers';

/** Each fault as often as it has cards, in an order that is different each time. Endless. */
export function* deckOf<Fault extends string>(
  table: Readonly<Record<Fault, { readonly cards: number }>>,
  random: () => number,
): Generator<Fault, never> {
  const faults = Object.keys(table) as Fault[];
  const cards = faults.flatMap((fault) => Array<Fault>(table[fault].cards).fill(fault));
  for (;;) yield* shuffle(cards, random);
}

export function draw<Fault>(deck: Generator<Fault, never>): Fault {
  return deck.next().value;
}
