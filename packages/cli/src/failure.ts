import type { ElectionErrorCode, NotElectedError, NotElectedReason } from 'incumbent';
import type { Environment, Output, SignalName } from './context.ts';

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

/** A failure that the command itself found. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError';
  readonly code: string;
  readonly exitCode: number;

  constructor(code: string, exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.exitCode = exitCode;
  }
}

/** The command line cannot be used. */
export class UsageError extends CommandError {
  override readonly name: string = 'UsageError';
  constructor(message: string) {
    super('USAGE', exitCodes.usage, message);
  }
}

const signalNumbers: Readonly<Record<SignalName, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };

/** Why `context.signal` aborted. */
export class InterruptedError extends CommandError {
  override readonly name: string = 'InterruptedError';
  constructor(signal: SignalName) {
    super('INTERRUPTED', 128 + signalNumbers[signal], `interrupted by ${signal}`);
  }
}

/** An error as the exit code and the words it is reported with. */
export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly message: string;
}

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
  return {
    exitCode: exitCodes.internal,
    code: 'INTERNAL',
    message: `${message} (this should not happen; INCUMBENT_DEBUG=1 shows where it did)`,
  };
}

/**
 * Reports the failure: to people, or with `json` to programs.
 * @param hint a second line for people
 * @returns the exit code
 */
export async function reportFailure(
  error: unknown,
  to: { readonly stderr: Output; readonly env: Environment; readonly json: boolean },
  hint?: string,
): Promise<number> {
  const { exitCode, code, message } = describeFailure(error);
  if (error instanceof InterruptedError) return exitCode;
  const { toJson, visibleLines } = await import('./output/text.ts');
  if (to.json) {
    to.stderr.write(`${toJson({ error: { code, message } })}\n`);
  } else {
    to.stderr.write(`incumbent: ${visibleLines(message)}\n`);
    if (hint !== undefined) to.stderr.write(`${hint}\n`);
  }
  if (to.env['INCUMBENT_DEBUG']) {
    const { inspect } = await import('node:util');
    to.stderr.write(`${visibleLines(inspect(error))}\n`);
  }
  return exitCode;
}
