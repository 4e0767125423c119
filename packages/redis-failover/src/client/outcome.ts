import { NotSentError } from './errors.ts';

/**
 * What an error of a driver, or of a connection, says about its command.
 * `refused`: it was surely not applied, and may be elsewhere or later.
 * `answered`: any other answer of Redis: a reply like others.
 * `misused`: the driver did not send it, such as for an argument of a wrong type.
 * `unknown`: it may have been applied.
 */
export type ErrorKind = 'refused' | 'answered' | 'misused' | 'unknown';

/** Said by Redis before it begins with a command. */
const refusals =
  /^(READONLY You can't write against a read only|LOADING Redis is loading|MASTERDOWN Link with MASTER is down|NOREPLICAS Not enough good replicas|BUSY Redis is busy running a script|CLUSTERDOWN |TRYAGAIN |UNBLOCKED )/;
/**
 * Of these also a script surely has done nothing yet: the role of a node does not change under it. Redis says
 * them before it begins, or where a script calls a command; one that returns the same words by itself
 * (`redis.error_reply`) cannot be told from that.
 */
const refusalsOfScripts =
  /^(READONLY You can't write against|LOADING Redis is loading|MASTERDOWN Link)/;

export interface AskedKind {
  readonly isScript: boolean;
  /** Several commands without a transaction: of which the others may have been applied. */
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

/** Whether all commands of a pipeline were refused, as ioredis tells it: `[error, result]` of each. */
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
  // Nothing of a discarded transaction was applied; ioredis keeps why it was discarded.
  const { previousErrors } = error as { readonly previousErrors?: readonly Error[] };
  const discarded = /^EXECABORT (?:Transaction discarded because of: )?/.exec(error.message);
  if (discarded === null) return false;
  const because = error.message.slice(discarded[0].length);
  return (
    refusals.test(because) || previousErrors?.some(({ message }) => refusals.test(message)) === true
  );
}

/** No driver is imported here: its classes are known by name, up to `ErrorReply` and `ReplyError`. */
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

/** node-redis: taken out of its queue before it was written. ioredis has an AbortError that says less. */
function isAbort(error: Error): boolean {
  return error.message === 'The command was aborted';
}
