import type { Scope } from '../../core/contest.ts';
import type { Leftovers } from './leftovers.ts';
import type { Place, QueueStore } from './store.ts';

export interface QueueSettings<Guard> {
  readonly guard: (place: Place) => Guard;
  /** False: a leader that follows an unclean one does not wait, and two may believe at once. */
  readonly waitsForPredecessor: boolean;
  readonly stepsDownWhenDisconnected: boolean;
  /** How often a waiting candidate looks whether a notification was lost. */
  readonly recheckMs: number;
  /** How long every winner waits, whatever leader was before it. */
  readonly delayAfterWinMs: number;
}

/** Shared by the parts of one election. */
export interface QueueParts<Guard> {
  readonly store: QueueStore;
  readonly scope: Scope;
  readonly settings: QueueSettings<Guard>;
  readonly leftovers: Leftovers;
}
