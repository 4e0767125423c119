import type { Clock } from '../base/clock.ts';
import type { QueueSettings } from '../mechanisms/queue/settings.ts';

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

/** Those that a server answers from what it has. */
export const readOnly: ReadonlySet<QueueOperation> = new Set(['list', 'read', 'members', 'watch']);

/** What becomes of one operation. Nothing given: it is applied and answered at once. */
export interface QueueFault {
  /** The request reaches the store so much later: in vain if the session has moved or is over. */
  readonly requestMs?: number;
  /** The reply reaches the caller so much later. */
  readonly replyMs?: number;
  /** `request`: never applied and never answered. `reply`: applied and never answered. */
  readonly lose?: 'request' | 'reply';
  /** Answered with an error. `before`: and not applied. `after`: although it was applied. */
  readonly fail?: 'before' | 'after';
}

/**
 * `silent`: nothing is applied or answered. `refuses`: every operation fails. `cut-off`: the server
 * has lost its quorum and does not know it: it answers reads from what it has, and nothing else.
 */
export type QueueOutage = 'none' | 'silent' | 'refuses' | 'cut-off';

/** An operation that waits until the test lets it go on. */
export interface HeldQueueOperation {
  readonly kind: QueueOperation;
  /** The request reaches the store: it is applied, and nobody hears of it yet. Once only. */
  apply(): void;
  /** The reply reaches the caller; applies first if that was not done. */
  answer(): void;
  /** The caller hears of an error, whatever has become of the operation. */
  fail(error?: Error): void;
}

export interface SimulatedQueueOptions {
  /** What delays are counted by. */
  readonly clock: Clock;
  /** Others than this library may be members. Default false. */
  readonly isMixed?: boolean;
  /** T. Sessions end only when a test says so; timings follow from it. Default 10 s. */
  readonly sessionTimeoutMs?: number;
  /** What `backend` is to do otherwise than by default. */
  readonly settings?: Partial<Omit<QueueSettings<bigint>, 'guard'>>;
}
