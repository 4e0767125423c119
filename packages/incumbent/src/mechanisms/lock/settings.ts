import type { QueueParts, QueueSettings } from '../queue/settings.ts';
import type { LockStore } from './store.ts';

export interface LockSettings<Guard> extends QueueSettings<Guard> {
  /** How often to look at the lock instead of watching it. Undefined: watch. */
  readonly pollMs: number | undefined;
}

/** As with a queue. */
export interface LockParts<Guard> extends QueueParts<Guard> {
  readonly store: LockStore;
  readonly settings: LockSettings<Guard>;
}
