import type { Clock } from '../base/clock.ts';
import type { QueueSettings } from '../mechanisms/queue/settings.ts';

/** The operations of a store with sessions, by which faults are set. */
export type QueueOperation =
  | 'enter'
  | 'leave'
  | 'list'
  | 'read'
  | 'sync'
  | 'commit'
  | 'release'
  | 'amend'
  | 'remove'
  | 'members'
  | 'watch'
  | 'confirm';

/** Operations that a server answers from its own data. */
export const readOnly: ReadonlySet<QueueOperation> = new Set(['list', 'read', 'members', 'watch']);

/** The fate of one operation. Without fields: it is applied and answered at once. */
export interface QueueFault {
  /** The request reaches the store this much later: in vain if the session has moved or is over. */
  readonly requestMs?: number;
  /** The reply reaches the caller this much later. */
  readonly replyMs?: number;
  /** `request`: never applied and never answered. `reply`: applied and never answered. */
  readonly lose?: 'request' | 'reply';
  /** Answered with an error. `before`: and not applied. `after`: although it was applied. */
  readonly fail?: 'before' | 'after';
}

/**
 * - `silent`: nothing is applied or answered.
 * - `refuses`: every operation fails.
 * - `cut-off`: the server has lost its quorum and does not know it. It answers reads from its own
 *   data, and nothing else.
 */
export type QueueOutage = 'none' | 'silent' | 'refuses' | 'cut-off';

/** An operation that waits until the test lets it go on. */
export interface HeldQueueOperation {
  readonly kind: QueueOperation;
  /**
   * The request reaches the store: it is applied, and the caller does not hear of it
   * yet. Once only.
   */
  apply(): void;
  /** The reply reaches the caller. Applies the operation first if that was not done. */
  answer(): void;
  /** The caller gets an error, whatever the outcome of the operation. */
  fail(error?: Error): void;
}

/** The options of a `SimulatedQueueStore`. */
export interface SimulatedQueueOptions {
  /** The clock that counts delays. */
  readonly clock: Clock;
  /** True: others than this library may be members. Default false. */
  readonly isMixed?: boolean;
  /**
   * The session timeout, in ms. Timings follow from it, but sessions end only when a test says so.
   * Default 10 s.
   */
  readonly sessionTimeoutMs?: number;
  /** Settings of `backend` that differ from its defaults. */
  readonly settings?: Partial<Omit<QueueSettings<bigint>, 'guard'>>;
}
