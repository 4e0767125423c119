import type { NodeAddress } from '../node-address.ts';

/** The values of `FailoverError.code`. */
export type FailoverErrorCode =
  | 'NO_PRIMARY'
  | 'OUTCOME_UNKNOWN'
  | 'REQUEST_REFUSED'
  | 'NO_MANAGER'
  | 'WRONG_ROLE'
  | 'NOT_ROUTABLE'
  | 'ITERATION_BROKEN'
  | 'CLOSED';

/** Base class of the errors that the client itself throws. Branch on the class or on `code`. */
export class FailoverError extends Error {
  override readonly name: string = 'FailoverError';
  readonly code: FailoverErrorCode;

  constructor(code: FailoverErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Code `NO_PRIMARY`. Nothing was applied: within `maxWait` there was no primary that could be
 * written to, or no node to read from. The message says why.
 */
export class NoPrimaryError extends FailoverError {
  override readonly name: string = 'NoPrimaryError';
  constructor(message: string, options?: ErrorOptions) {
    super('NO_PRIMARY', message, options);
  }
}

/** Where a command of unknown outcome was sent; undefined if not known. */
export interface UnknownOutcome {
  readonly term: number | undefined;
  readonly primary: NodeAddress | undefined;
}

/**
 * Code `OUTCOME_UNKNOWN`. The command may have been applied, and may be lost again. Either the
 * connection broke before the reply, or the primary was moved before its reply could be trusted.
 * Look at the data before you repeat it: the client has not, unless the option `retryAmbiguous` is
 * set.
 */
export class OutcomeUnknownError extends FailoverError {
  override readonly name: string = 'OutcomeUnknownError';
  /** The term in which it was sent; undefined if not known, and under managers of the Ruby gem. */
  readonly term: number | undefined;
  /** The node to which it was sent. */
  readonly primary: NodeAddress | undefined;

  constructor(message: string, where?: UnknownOutcome, options?: ErrorOptions) {
    super('OUTCOME_UNKNOWN', message, options);
    this.term = where?.term;
    this.primary = where?.primary;
  }
}

/**
 * Code `REQUEST_REFUSED`. The managers have not moved the primary; the message is theirs. Mostly
 * nothing was changed. If the chosen node did not get all that the primary had within 5 s, the
 * primary goes on. Then its writers have waited for that time, and the term is one higher. If the
 * move may still be carried out, the message says so.
 */
export class FailoverRefusedError extends FailoverError {
  override readonly name: string = 'FailoverRefusedError';
  constructor(message: string) {
    super('REQUEST_REFUSED', message);
  }
}

/**
 * Code `NO_MANAGER`. No manager has begun the requested failover in time. The request is withdrawn.
 */
export class NoManagerError extends FailoverError {
  override readonly name: string = 'NoManagerError';
  constructor(message: string, options?: ErrorOptions) {
    super('NO_MANAGER', message, options);
  }
}

/**
 * Code `WRONG_ROLE`. A node is not what ZooKeeper says: it has another role, or runs in another
 * process than the one on record.
 */
export class WrongRoleError extends FailoverError {
  override readonly name: string = 'WrongRoleError';
  constructor(message: string) {
    super('WRONG_ROLE', message);
  }
}

/**
 * Code `NOT_ROUTABLE`. The command needs a connection of your own. It was not sent. The message
 * says what to use instead.
 */
export class NotRoutableError extends FailoverError {
  override readonly name: string = 'NotRoutableError';
  constructor(message: string) {
    super('NOT_ROUTABLE', message);
  }
}

/**
 * Code `ITERATION_BROKEN`. The primary was moved in the middle of an iteration, and its cursor
 * means nothing to another node. Begin the iteration again.
 */
export class IterationBrokenError extends FailoverError {
  override readonly name: string = 'IterationBrokenError';
  constructor(message: string) {
    super('ITERATION_BROKEN', message);
  }
}

/** Code `CLOSED`. The client was closed. The command was not applied. */
export class ClosedError extends FailoverError {
  override readonly name: string = 'ClosedError';
  constructor(message = 'the client has been closed', options?: ErrorOptions) {
    super('CLOSED', message, options);
  }
}

/** Internal: a command was not sent, because the connection was closed already. */
export class NotSentError extends Error {
  override readonly name: string = 'NotSentError';
}
