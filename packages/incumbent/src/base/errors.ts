import { formatDuration } from './format-duration.ts';
import { errorToJson, withJson } from './json.ts';
import type { NotElectedReason } from './not-elected.ts';
import { causeOf, describeNotElected } from './not-elected.ts';
import type { EndReason } from './reasons.ts';

/** The kinds of errors. Each class of error has one code of its own. */
export type ElectionErrorCode =
  | 'INVALID_OPTION'
  | 'INVALID_TIMING'
  | 'MISUSE'
  | 'CLOSED'
  | 'TERM_ENDED'
  | 'NOT_LEADING'
  | 'NOT_ELECTED'
  | 'ELECTION_ENDED'
  | 'REFUSED'
  | 'OPERATION_TIMEOUT'
  | 'STORE_UNAVAILABLE'
  | 'STORE_UNSUITABLE'
  | 'RECORD_DAMAGED'
  | 'RECORD_TOO_NEW'
  | 'TAKEOVER_FAILED'
  | 'LEFT_BEHIND'
  | 'NO_LEADER';

type Details = ErrorOptions & { readonly retryable?: boolean };

/**
 * Base of every error that the library throws. Branch on `code` or `retryable`, not on the message.
 */
export class ElectionError extends Error {
  override readonly name: string = 'ElectionError';
  /** The kind of error. */
  readonly code: ElectionErrorCode;
  /** True when the same call can succeed later. */
  readonly retryable: boolean;

  constructor(code: ElectionErrorCode, message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.retryable = details.retryable ?? false;
  }

  /** A plain object for logs: tokens as decimal texts, without the stack. */
  toJSON(): Readonly<Record<string, unknown>> {
    return errorToJson(this);
  }
}

/** An option has a value that cannot be used. Thrown at once, before anything is changed. */
export class InvalidOptionError extends ElectionError {
  override readonly name: string = 'InvalidOptionError';
  constructor(message: string) {
    super('INVALID_OPTION', message);
  }
}

/** Durations do not fit together. `violations` has one sentence for each broken rule. */
export class InvalidTimingError extends ElectionError {
  override readonly name: string = 'InvalidTimingError';
  /** One sentence for each broken rule, with its numbers. */
  readonly violations: readonly string[];
  constructor(violations: readonly string[]) {
    super('INVALID_TIMING', `these timings cannot be kept:\n  ${violations.join('\n  ')}`);
    this.violations = violations;
  }
}

/** The API was used in an order that cannot work, such as two campaigns on one handle. */
export class MisuseError extends ElectionError {
  override readonly name: string = 'MisuseError';
  constructor(message: string) {
    super('MISUSE', message);
  }
}

/** The handle was closed. Create another one. */
export class ClosedError extends ElectionError {
  override readonly name: string = 'ClosedError';
  constructor(election: string) {
    super('CLOSED', `this handle on election "${election}" is closed; create another one`);
  }
}

/** The reason of `term.signal`: why the term ended. */
export class TermEndedError extends ElectionError {
  override readonly name: string = 'TermEndedError';
  /** Why the term ended. */
  readonly reason: EndReason;
  /** The token of the term. */
  readonly token: bigint;
  constructor(reason: EndReason, token: bigint, message: string, options: ErrorOptions = {}) {
    super('TERM_ENDED', message, options);
    this.reason = reason;
    this.token = token;
  }
}

/** `assertLeading` found that less belief is left than was asked for. */
export class NotLeadingError extends ElectionError {
  override readonly name: string = 'NotLeadingError';
  /** The token of the term that was asked. */
  readonly token: bigint;
  /** The belief that was asked for, in ms. */
  readonly neededMs: number;
  /** Belief that is left, in ms. Zero or less: the belief is over. */
  readonly remainingMs: number;
  constructor(election: string, token: bigint, neededMs: number, remainingMs: number) {
    super(
      'NOT_LEADING',
      remainingMs > 0
        ? `term ${token} of election "${election}" has ${Math.floor(remainingMs)} ms of belief ` +
            `left, ${neededMs} ms are needed: stop, or do a smaller step`
        : `term ${token} of election "${election}" is over: stop`,
    );
    this.token = token;
    this.neededMs = neededMs;
    this.remainingMs = remainingMs;
  }
}

/** A campaign with `wait` did not win within its bound. Branch on `why.kind`, or on `taken`. */
export class NotElectedError extends ElectionError {
  override readonly name: string = 'NotElectedError';
  /** The last reason that is known. */
  readonly why: NotElectedReason;
  constructor(election: string, waitMs: number, why: NotElectedReason, nowUnixMs?: number) {
    const within = waitMs === 0 ? '' : ` within ${formatDuration(waitMs)}`;
    super(
      'NOT_ELECTED',
      `election "${election}" was not won${within}: ${describeNotElected(why, nowUnixMs)}`,
      { cause: causeOf(why), retryable: true },
    );
    this.why = withJson(why);
  }

  /** True when the job is another candidate's: it leads, or holds the seat, or has it reserved. */
  get taken(): boolean {
    const { kind } = this.why;
    return kind === 'led' || kind === 'held' || kind === 'reserved';
  }
}

/** The election was ended for everybody. */
export class ElectionEndedError extends ElectionError {
  override readonly name: string = 'ElectionEndedError';
  constructor(election: string) {
    super(
      'ELECTION_ENDED',
      `election "${election}" was ended for everybody; \`incumbent init --reopen\` opens it again`,
    );
  }
}

/** An operator's request cannot be granted. The message says what to do instead. */
export class RefusedError extends ElectionError {
  override readonly name: string = 'RefusedError';
  constructor(message: string) {
    super('REFUSED', message);
  }
}

/** The store did not answer within the operation timeout. Whether a write was applied is unknown. */
export class OperationTimeoutError extends ElectionError {
  override readonly name: string = 'OperationTimeoutError';
  /** How long the operation was waited for, in ms. */
  readonly timeoutMs: number;
  constructor(operation: string, timeoutMs: number) {
    const within = formatDuration(Math.round(timeoutMs));
    super('OPERATION_TIMEOUT', `${operation} was not answered within ${within}`, {
      retryable: true,
    });
    this.timeoutMs = timeoutMs;
  }
}

/** The store cannot be reached or refuses to work at the moment. */
export class StoreUnavailableError extends ElectionError {
  override readonly name: string = 'StoreUnavailableError';
  constructor(message: string, options: ErrorOptions = {}) {
    super('STORE_UNAVAILABLE', message, { ...options, retryable: true });
  }
}

/** The store cannot give what an election needs. A network file system is such a store. */
export class StoreUnsuitableError extends ElectionError {
  override readonly name: string = 'StoreUnsuitableError';
  constructor(message: string, options: ErrorOptions = {}) {
    super('STORE_UNSUITABLE', message, options);
  }
}

/** The store holds data that is not a record of ours. It is never overwritten. */
export class RecordDamagedError extends ElectionError {
  override readonly name: string = 'RecordDamagedError';
  /** The file, key or object that could not be read. */
  readonly location: string;
  constructor(location: string, why: string, options: ErrorOptions = {}) {
    super(
      'RECORD_DAMAGED',
      `${location} is not an election record (${why}); it is left as it is: move it away by hand ` +
        'once no candidate of this election runs',
      options,
    );
    this.location = location;
  }
}

/** A newer version wrote the record. This version refuses it and does not guess. */
export class RecordTooNewError extends ElectionError {
  override readonly name: string = 'RecordTooNewError';
  /** The format of the record. */
  readonly format: number;
  constructor(location: string, format: number, supported: number) {
    super(
      'RECORD_TOO_NEW',
      `${location} has record format ${format}, this version reads up to ${supported}: ` +
        'update this program',
    );
    this.format = format;
  }
}

/**
 * A fence hook failed or did not end in time, so the term was given up before it began. A hook may
 * throw it itself: then the record shows its `why` to operators.
 */
export class TakeoverFailedError extends ElectionError {
  override readonly name: string = 'TakeoverFailedError';
  /** Why the leader before could not be fenced. */
  readonly why: string;
  constructor(election: string, why: string, options: ErrorOptions = {}) {
    super('TAKEOVER_FAILED', `taking over election "${election}" failed: ${why}`, {
      ...options,
      retryable: true,
    });
    this.why = why;
  }
}

/**
 * A place in the queue could not be given back. Until it is gone, no candidate behind it can lead.
 */
export class LeftBehindError extends ElectionError {
  override readonly name: string = 'LeftBehindError';
  /** The node or key that is left behind. */
  readonly place: string;
  constructor(place: string, options: ErrorOptions = {}) {
    super(
      'LEFT_BEHIND',
      `the place ${place} could not be given back and is left behind; it is deleted as soon as the ` +
        'store can be reached, or goes with the session',
      options,
    );
    this.place = place;
  }
}

/** A request for the leader found no leader, or none that took it, within its bounds. */
export class NoLeaderError extends ElectionError {
  override readonly name: string = 'NoLeaderError';
  /** @param cause the error of the last attempt */
  constructor(election: string, why: string, cause?: unknown) {
    super('NO_LEADER', `no leader of election "${election}" took the request: ${why}`, {
      cause,
      retryable: true,
    });
  }
}

/** Errors that waiting and trying again cannot cure. */
export function isIncurable(error: unknown): boolean {
  return (
    error instanceof ElectionError &&
    (error.code === 'ELECTION_ENDED' ||
      error.code === 'MISUSE' ||
      error.code === 'RECORD_DAMAGED' ||
      error.code === 'RECORD_TOO_NEW' ||
      error.code === 'STORE_UNSUITABLE' ||
      error.code === 'INVALID_OPTION')
  );
}
