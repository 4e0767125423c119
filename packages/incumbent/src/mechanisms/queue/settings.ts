import type { Place } from './store.ts';

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
