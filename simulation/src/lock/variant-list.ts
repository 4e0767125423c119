/**
 * The lock, broken on purpose: each variant takes one thing away that a promise rests on, in the
 * core or in the ZooKeeper backend below it. See `../lease/variant-list.ts`.
 */
import type { Variant } from '../harness/mechanism.ts';
import type { lockGuarantees } from './guarantees.ts';

/** Two leaders, or what leads to two leaders. */
const s1 = ['belief', 'waiting', 'margin', 'fencing'] as const;

export const lockVariants: readonly Variant<keyof typeof lockGuarantees>[] = [
  {
    name: 'lock: no wait after an unclean predecessor',
    edits: [{ file: 'lock/race.js', find: 'if (!waitsForPredecessor)', replace: 'if (true)' }],
    breaks: s1,
  },
];
