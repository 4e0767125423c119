import type { Spell } from './messages.ts';

/** The statements of one candidate about itself, with their times. */
export interface Said {
  readonly candidate: string;
  readonly spells: readonly Spell[];
}

/**
 * For how long two of them would have said "I lead" at once, in ms. A spell lasts from the first
 * moment in which the candidate could ask to the first denial. That is longer, if anything, than
 * the samples show.
 */
export function overlapMs(all: readonly Said[], nowMs: number): number {
  let sum = 0;
  for (const [index, one] of all.entries()) {
    for (const other of all.slice(index + 1)) {
      for (const a of one.spells) {
        for (const b of other.spells) {
          const fromMs = Math.max(a.fromMs, b.fromMs);
          sum += Math.max(0, Math.min(a.untilMs ?? nowMs, b.untilMs ?? nowMs) - fromMs);
        }
      }
    }
  }
  return sum;
}

/** Tokens rise in the order in which the spells began, whoever had them. */
export function tokensRise(all: readonly Said[]): boolean {
  const spells = all.flatMap(({ spells }) => spells).sort((a, b) => a.fromMs - b.fromMs);
  return spells.every(
    ({ token }, index) => index === 0 || BigInt(spells[index - 1]?.token ?? 0) < BigInt(token),
  );
}
