import type { Environment, Output, SignalName } from './context.ts';
import { toJson, visibleLines } from './output/text.ts';

/** What the command ends with. */
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
  /** What we were asked for cannot be written to stdout. */
  output: 74,
} as const;

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

/** What a flag, a variable or the configuration file says cannot be used. */
export class SettingError extends CommandError {
  override readonly name: string = 'SettingError';
  constructor(message: string) {
    super('CONFIGURATION', exitCodes.usage, message);
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
interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly message: string;
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

function describeFailure(error: unknown): Failure {
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
  return {
    exitCode: exitCodes.internal,
    code: 'INTERNAL',
    message: `${message} (this should not happen; INCUMBENT_DEBUG=1 shows where it did)`,
  };
}

/** An address may have been written as a URL with a password in it, and is shown in the error. */
function withoutUserInfo(text: string): string {
  return text.replace(/\/\/[^\s/@"']*@/g, '//***@');
}

/**
 * Tells people, or with `json` programs, what went wrong.
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
  if (to.json) {
    to.stderr.write(`${toJson({ error: { code, message } })}\n`);
  } else {
    to.stderr.write(`incumbent-redis: ${visibleLines(message)}\n`);
    if (hint !== undefined) to.stderr.write(`${hint}\n`);
  }
  if (to.env['INCUMBENT_DEBUG']) {
    const { inspect } = await import('node:util');
    to.stderr.write(`${visibleLines(withoutUserInfo(inspect(error)))}\n`);
  }
  return exitCode;
}
