export type GuardErrorCode =
  /** The guard could not be started. */
  | 'GUARD_FAILED'
  /** The guard died or fell silent; every process that it ran was killed. */
  | 'GUARD_LOST'
  /** The program could not be started. */
  | 'CANNOT_START'
  /** Belief was over, or too nearly over, to start the program. */
  | 'BELIEF_OVER'
  /** The program had ended, or was being stopped, before it was let go. */
  | 'ENDED'
  /** Called in an order that cannot work. */
  | 'MISUSE'
  /** Only reported: a process of the group is still there seconds after KILL. */
  | 'LINGERING'
  /** Only reported: variables whose names no shell of this machine passes on. */
  | 'VARIABLES_DROPPED';

export class GuardError extends Error {
  override readonly name: string = 'GuardError';
  readonly code: GuardErrorCode;
  /** For `CANNOT_START`: the exit code that a shell would have, 126 or 127. */
  readonly exitCode: number | undefined;

  constructor(code: GuardErrorCode, message: string, details?: { readonly exitCode?: number }) {
    super(message);
    this.code = code;
    this.exitCode = details?.exitCode;
  }
}
