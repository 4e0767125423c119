import type { ErrorContext, ZooKeeperError } from './errors.ts';
import { errorForCode } from './errors.ts';
import { errorCodes, opcodes } from './protocol/constants.ts';
import type { MultiResult } from './protocol/multi.ts';

/** The operation that made a multi fail. A refused multi has error 0 in its header. */
export interface FailedOperation {
  readonly index: number;
  readonly error: ZooKeeperError;
}

/** @param contextOf the context of the operation at an index, for its error */
export function findFailure(
  results: readonly MultiResult[],
  contextOf: (index: number) => ErrorContext,
): FailedOperation | undefined {
  let notTried: number | undefined;
  for (const [index, result] of results.entries()) {
    if (result.opcode !== opcodes.error || result.error === errorCodes.ok) continue;
    if (result.error === errorCodes.runtimeInconsistency) {
      notTried ??= index;
      continue;
    }
    return { index, error: errorForCode(result.error, { ...contextOf(index), index }) };
  }
  if (notTried === undefined) return undefined;
  return {
    index: notTried,
    error: errorForCode(errorCodes.runtimeInconsistency, {
      ...contextOf(notTried),
      index: notTried,
    }),
  };
}
