import type { NodeAddress } from '../node-address.ts';

export type FailoverErrorCode =
  | 'NO_PRIMARY'
  | 'OUTCOME_UNKNOWN'
  | 'REQUEST_REFUSED'
  | 'NO_MANAGER'
  | 'WRONG_ROLE'
  | 'NOT_ROUTABLE'
  | 'ITERATION_BROKEN'
  | 'CLOSED';

/** Base of what the client itself throws. Branch on the class or on `code`. */
export class FailoverError extends Error {
  override readonly name: string = 'FailoverError';
  readonly code: FailoverErrorCode;

  constructor(code: FailoverErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Nothing was applied: within `maxWait` there was no primary that could be written to, or no node to read from. */
export class NoPrimaryError extends FailoverError {
  override readonly name: string = 'NoPrimaryError';
  constructor(message: string, options?: ErrorOptions) {
    super('NO_PRIMARY', message, options);
  }
}

export interface UnknownOutcome {
  readonly term: number | undefined;
  readonly primary: NodeAddress | undefined;
}

/**
 * It may have been applied, and may be lost again: the connection broke before the reply, or the
 * primary was moved before its reply could be believed. Whether to repeat it is the caller's choice;
 * `retryAmbiguous` makes it for all.
 */
export class OutcomeUnknownError extends FailoverError {
  override readonly name: string = 'OutcomeUnknownError';
  /** Where it was sent. */
  readonly term: number | undefined;
  readonly primary: NodeAddress | undefined;

  constructor(message: string, where?: UnknownOutcome, options?: ErrorOptions) {
    super('OUTCOME_UNKNOWN', message, options);
    this.term = where?.term;
    this.primary = where?.primary;
  }
}

/**
 * The manager's own words why it has not moved the primary. Mostly nothing was changed. If the node did not
 * get all that the primary had within 5 s, the primary goes on: its writers waited for so long, and the term
 * is one higher. Where the move may still be carried out, the message says so.
 */
export class FailoverRefusedError extends FailoverError {
  override readonly name: string = 'FailoverRefusedError';
  constructor(message: string) {
    super('REQUEST_REFUSED', message);
  }
}

/** No manager has begun a requested failover in time. The request is withdrawn. */
export class NoManagerError extends FailoverError {
  override readonly name: string = 'NoManagerError';
  constructor(message: string, options?: ErrorOptions) {
    super('NO_MANAGER', message, options);
  }
}

/** A node is not what ZooKeeper says it is: another role, or another process than the one on record. */
export class WrongRoleError extends FailoverError {
  override readonly name: string = 'WrongRoleError';
  constructor(message: string) {
    super('WRONG_ROLE', message);
  }
}

/** A command that needs a connection of one's own. The message names the way out. */
export class NotRoutableError extends FailoverError {
  override readonly name: string = 'NotRoutableError';
  constructor(message: string) {
    super('NOT_ROUTABLE', message);
  }
}

/** The primary was moved in the middle of an iteration: its cursor means nothing to another. Begin anew. */
export class IterationBrokenError extends FailoverError {
  override readonly name: string = 'IterationBrokenError';
  constructor(message: string) {
    super('ITERATION_BROKEN', message);
  }
}

export class ClosedError extends FailoverError {
  override readonly name: string = 'ClosedError';
  constructor(message = 'the client has been closed', options?: ErrorOptions) {
    super('CLOSED', message, options);
  }
}

/** Not told to callers: a command was not sent, for there was no connection any more. */
export class NotSentError extends Error {
  override readonly name: string = 'NotSentError';
}
