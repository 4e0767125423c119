import type { Failure } from '../terminal/failure.ts';
import { UsageError as AnyUsageError, CommandError, internalFailure } from '../terminal/failure.ts';

export { CommandError, InterruptedError } from '../terminal/failure.ts';

/** The exit codes of the command. */
export const exitCodes = {
  /** Done; for `status`: healthy. */
  ok: 0,
  /** Refused or failed; for `status`: degraded. */
  no: 1,
  /** The command line, the environment or the configuration cannot be used. */
  usage: 2,
  zookeeper: 3,
  /** Our own mistake. */
  internal: 70,
  /** The output cannot be written to stdout. */
  output: 74,
} as const;

/** The command line cannot be used. */
export class UsageError extends AnyUsageError {
  constructor(message: string) {
    super(message, exitCodes.usage);
  }
}

/** A value of a flag, of a variable or of the configuration file cannot be used. */
export class SettingError extends CommandError {
  override readonly name: string = 'SettingError';
  constructor(message: string) {
    super('CONFIGURATION', exitCodes.usage, message);
  }
}

/** Codes of errors that are not ours, by what they mean for whoever called us. */
const exitCodeOf: Readonly<Record<string, number>> = {
  INVALID_OPTION: exitCodes.usage,
  INVALID_ARGUMENT: exitCodes.usage,
  LAYOUT: exitCodes.no,
  REQUEST_REFUSED: exitCodes.no,
  NO_MANAGER: exitCodes.no,
  OUTCOME_UNKNOWN: exitCodes.no,
};

export function describeFailure(error: unknown): Failure {
  const text = error instanceof Error ? error.message : String(error);
  const message = withoutUserInfo(text);
  if (error instanceof CommandError) return { exitCode: error.exitCode, code: error.code, message };
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const exitCode = Object.hasOwn(exitCodeOf, code) ? exitCodeOf[code] : undefined;
  if (exitCode !== undefined) return { exitCode, code, message };
  if (code === 'AUTH_FAILED' || code === 'SASL_REQUIRED') {
    const wayOut = 'look at INCUMBENT_ZK_AUTH and INCUMBENT_ZK_SASL';
    return { exitCode: exitCodes.zookeeper, code, message: `ZooKeeper: ${message}; ${wayOut}` };
  }
  // That of our ZooKeeper client, or of the election that stands on it.
  if (error instanceof Error && 'retryable' in error && code !== '') {
    return { exitCode: exitCodes.zookeeper, code, message };
  }
  return internalFailure(message);
}

/** An address may have been written as a URL with a password in it, and is shown in the error. */
export function withoutUserInfo(text: string): string {
  return text.replace(/\/\/[^\s/@"']*@/g, '//***@');
}
