import type { Scope } from '../../core/contest.ts';
import type { Leftovers } from './leftovers.ts';
import type { Place, QueueStore } from './store.ts';

export interface QueueSettings<Guard> {
  readonly guard: (place: Place) => Guard;
  /** False: who follows an unclean leader does not wait, and two may believe at once. */
  readonly waitsForPredecessor: boolean;
  readonly stepsDownWhenDisconnected: boolean;
  /** How often a waiting candidate looks whether a notification was lost. */
  readonly recheckMs: number;
  /** How long every winner waits, whoever led before. */
  readonly delayAfterWinMs: number;
}

/** What the parts of one election share. */
export interface QueueParts<Guard> {
  readonly store: QueueStore;
  readonly scope: Scope;
  readonly settings: QueueSettings<Guard>;
  readonly leftovers: Leftovers;
}
