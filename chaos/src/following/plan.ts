import { seeded, shuffle } from '@incumbent/servers';
import type { Timing } from 'incumbent';

/** The faults of the leader. */
export const faults = ['kill', 'resign', 'freeze', 'vacate'] as const;
export type Fault = (typeof faults)[number];

interface Card {
  readonly fault: Fault;
  /** The next fault comes when calls have to succeed again, and a little later. */
  readonly calm: boolean;
}

/** Eight changes. Where the next one comes at once, only who served what is put to the test. */
const deck: readonly Card[] = [
  { fault: 'kill', calm: true },
  { fault: 'kill', calm: false },
  { fault: 'kill', calm: false },
  { fault: 'resign', calm: true },
  { fault: 'resign', calm: false },
  { fault: 'freeze', calm: true },
  { fault: 'freeze', calm: false },
  { fault: 'vacate', calm: false },
];

/** One change of the leader. All of it follows from the seed, whatever the processes then do. */
export interface Change extends Card {
  /** From 1. */
  readonly number: number;
  /** How long after the first call that the leader has served, or after the calm began. */
  readonly afterMs: number;
  /** `freeze` only; longer than the lease. */
  readonly freezeMs: number;
  /** `kill` only: when another one is started in its place. */
  readonly restartMs: number;
}

export function planChanges(count: number, seed: number, timing: Timing): readonly Change[] {
  const random = seeded(seed);
  const between = (fromMs: number, toMs: number) => Math.round(fromMs + random() * (toMs - fromMs));
  const changes: Change[] = [];
  while (changes.length < count) {
    for (const card of shuffle(deck, random).slice(0, count - changes.length)) {
      changes.push({
        ...card,
        number: changes.length + 1,
        afterMs: between(0, timing.renewEveryMs),
        freezeMs: between(1.02 * timing.leaseMs, 1.6 * timing.leaseMs),
        restartMs: between(0, 300),
      });
    }
  }
  return changes;
}
