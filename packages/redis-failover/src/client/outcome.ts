import { NotSentError } from './errors.ts';

/**
 * The meaning of an error of a driver, or of a connection, for its command.
 *
 * - `refused`: it was surely not applied, and may succeed elsewhere or later.
 * - `answered`: any other answer of Redis, which is a reply like others.
 * - `misused`: the driver did not send it, for example because an argument has a wrong type.
 * - `unknown`: it may have been applied.
 */
export type ErrorKind = 'refused' | 'answered' | 'misused' | 'unknown';

/** Errors that Redis answers before it begins with a command. */
const refusals =
  /^(READONLY You can't write against a read only|LOADING Redis is loading|MASTERDOWN Link with MASTER is down|NOREPLICAS Not enough good replicas|BUSY Redis is busy running a script|CLUSTERDOWN |TRYAGAIN |UNBLOCKED )/;
/**
 * After these errors a script, too, has surely done nothing: the role of a node does not change
 * while a script runs. Redis answers them before it begins, or when a script calls a command. A
 * script that returns the same words by itself (`redis.error_reply`) cannot be told from that.
 */
const refusalsOfScripts =
  /^(READONLY You can't write against|LOADING Redis is loading|MASTERDOWN Link)/;

export interface AskedKind {
  readonly isScript: boolean;
  /** Several commands without a transaction: if one is refused, others may have been applied. */
  readonly isPipeline: boolean;
}

export function kindOf(error: unknown, { isScript, isPipeline }: AskedKind): ErrorKind {
  if (!(error instanceof Error)) return 'unknown';
  if (error instanceof NotSentError) return 'refused';
  if (isReply(error)) {
    if (isPipeline) return 'answered';
    return isRefusal(error, isScript) ? 'refused' : 'answered';
  }
  return error instanceof TypeError || isAbort(error) ? 'misused' : 'unknown';
}

/** Whether all commands of a pipeline were refused. ioredis gives `[error, result]` for each. */
export function isAllRefused(results: unknown): boolean {
  return (
    Array.isArray(results) &&
    results.length > 0 &&
    results.every(
      (each) => Array.isArray(each) && isReply(each[0]) && isRefusal(each[0] as Error, true),
    )
  );
}

function isRefusal(error: Error, isScript: boolean): boolean {
  const pattern = isScript ? refusalsOfScripts : refusals;
  if (pattern.test(error.message)) return true;
  // Nothing of a discarded transaction was applied. ioredis keeps the reasons in `previousErrors`.
  const { previousErrors } = error as { readonly previousErrors?: readonly Error[] };
  const discarded = /^EXECABORT (?:Transaction discarded because of: )?/.exec(error.message);
  if (discarded === null) return false;
  const because = error.message.slice(discarded[0].length);
  return (
    refusals.test(because) || previousErrors?.some(({ message }) => refusals.test(message)) === true
  );
}

/**
 * Whether Redis has answered with this error. This package imports no driver, so it knows the error
 * classes by name: `ErrorReply` and `ReplyError`, or a subclass of these.
 */
export function isReply(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  let prototype: object | null = Object.getPrototypeOf(error);
  while (prototype !== null) {
    const { name } = prototype.constructor;
    if (name === 'ErrorReply' || name === 'ReplyError') return true;
    prototype = Object.getPrototypeOf(prototype);
  }
  return error.name === 'ReplyError';
}

/**
 * node-redis took the command out of its queue before it was written. An AbortError of ioredis does
 * not tell that.
 */
function isAbort(error: Error): boolean {
  return error.message === 'The command was aborted';
}
