import type { ElectionErrorCode, NotElectedError, NotElectedReason } from 'incumbent';
import type { Failure } from './terminal/failure.ts';
import { CommandError, internalFailure } from './terminal/failure.ts';

export { CommandError, InterruptedError, UsageError } from './terminal/failure.ts';

/** The exit codes of the command. Those above 63 are the ones of sysexits(3). */
export const exitCodes = {
  ok: 0,
  /** Refused, or there is no leader. */
  no: 1,
  usage: 64,
  storeUnavailable: 69,
  /** Our own mistake. */
  internal: 70,
  /** The result cannot be written to stdout. */
  output: 74,
  /** Leadership was lost, or no candidate can be elected yet. The command may work later. */
  temporary: 75,
  /** This candidate is not healthy. */
  unhealthy: 76,
  /** An operator keeps this candidate out. */
  drained: 77,
  /** The leader was asked to go, and the wanted candidate will not lead: another one does. */
  notDone: 78,
} as const;

/**
 * The exit codes of `run --try` and `--wait`. A script can tell "another candidate leads" from the
 * rest.
 */
const exitCodeOfReason: Readonly<Record<NotElectedReason['kind'], number>> = {
  led: exitCodes.no,
  held: exitCodes.no,
  reserved: exitCodes.no,
  aside: exitCodes.no,
  lost: exitCodes.no,
  unreachable: exitCodes.storeUnavailable,
  settling: exitCodes.temporary,
  unhealthy: exitCodes.unhealthy,
  drained: exitCodes.drained,
};

const exitCodeOfElectionError: Readonly<Record<ElectionErrorCode, number>> = {
  INVALID_OPTION: exitCodes.usage,
  INVALID_TIMING: exitCodes.usage,
  MISUSE: exitCodes.no,
  CLOSED: exitCodes.internal,
  TERM_ENDED: exitCodes.no,
  NOT_LEADING: exitCodes.no,
  NOT_ELECTED: exitCodes.no,
  NO_LEADER: exitCodes.no,
  ELECTION_ENDED: exitCodes.no,
  REFUSED: exitCodes.no,
  OPERATION_TIMEOUT: exitCodes.storeUnavailable,
  STORE_UNAVAILABLE: exitCodes.storeUnavailable,
  LEFT_BEHIND: exitCodes.storeUnavailable,
  STORE_UNSUITABLE: exitCodes.storeUnavailable,
  RECORD_DAMAGED: exitCodes.storeUnavailable,
  RECORD_TOO_NEW: exitCodes.storeUnavailable,
  TAKEOVER_FAILED: exitCodes.no,
};

export function describeFailure(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof CommandError) return { exitCode: error.exitCode, code: error.code, message };
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'NOT_ELECTED' && error instanceof Error && 'why' in error) {
    const { why } = error as NotElectedError;
    return { exitCode: exitCodeOfReason[why.kind], code, message };
  }
  if (Object.hasOwn(exitCodeOfElectionError, code)) {
    return { exitCode: exitCodeOfElectionError[code as ElectionErrorCode], code, message };
  }
  // The operating system's: ENOSPC, EACCES, ECONNREFUSED, …
  if (error instanceof Error && 'syscall' in error) {
    return { exitCode: exitCodes.storeUnavailable, code, message };
  }
  // That of a store's client, where we have asked it ourselves.
  if (error instanceof Error && 'retryable' in error && code !== '') {
    return { exitCode: exitCodes.storeUnavailable, code, message };
  }
  return internalFailure(message);
}
