import type { Environment, Output, SignalName } from './host.ts';

/** Exit codes that mean the same for all of our commands. Codes above 63 are from sysexits(3). */
export const commonExitCodes = {
  ok: 0,
  /** Our own mistake. */
  internal: 70,
  /** The output cannot be written to stdout. */
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
  /** A second line for people. Undefined: the line that points to `--help`. */
  readonly hint: string | undefined;

  constructor(message: string, exitCode = 64, hint?: string) {
    super('USAGE', exitCode, message);
    this.hint = hint;
  }
}

const signalNumbers: Readonly<Record<SignalName, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };

/** The reason why `context.signal` aborted. It is reported by the exit code alone. */
export class InterruptedError extends CommandError {
  override readonly name: string = 'InterruptedError';
  constructor(cause: SignalName | 'EPIPE') {
    // A reader that closes the pipe has what it wanted (`incumbent-zk ls -R / | head -1`).
    const exitCode = cause === 'EPIPE' ? commonExitCodes.ok : 128 + signalNumbers[cause];
    super('INTERRUPTED', exitCode, `interrupted by ${cause}`);
  }
}

/** An error as it is reported: the exit code, a code for programs, the words. */
export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly message: string;
}

/** The failure for an error that the command did not expect. */
export function internalFailure(message: string): Failure {
  return {
    exitCode: commonExitCodes.internal,
    code: 'INTERNAL',
    message: `${message} (this should not happen; INCUMBENT_DEBUG=1 shows where it did)`,
  };
}

export interface Reporting {
  /** The name of the command. */
  readonly name: string;
  readonly stderr: Output;
  readonly env: Environment;
  /** Report the failure for programs, as a JSON object on one line. */
  readonly json: boolean;
  /** A second line for people. */
  readonly hint?: string | undefined;
  /** Show line breaks of the message as escapes. */
  readonly oneLine?: boolean | undefined;
  readonly describe: (error: unknown) => Failure;
  /** Removes secrets from the text that INCUMBENT_DEBUG shows. */
  readonly redact?: ((text: string) => string) | undefined;
}

/**
 * Writes the failure to stderr: for people, or with `json` for programs.
 * @returns the exit code
 */
export async function reportFailure(error: unknown, to: Reporting): Promise<number> {
  const { exitCode, code, message } = to.describe(error);
  if (error instanceof InterruptedError) return exitCode;
  const { toJson, visible, visibleLines } = await import('./text.ts');
  if (to.json) {
    to.stderr.write(`${toJson({ error: { code, message } })}\n`);
  } else {
    to.stderr.write(`${to.name}: ${to.oneLine ? visible(message) : visibleLines(message)}\n`);
    if (to.hint !== undefined) to.stderr.write(`${to.hint}\n`);
  }
  if (to.env['INCUMBENT_DEBUG']) {
    const { inspect } = await import('node:util');
    const { redact = (text: string) => text } = to;
    to.stderr.write(`${visibleLines(redact(inspect(error)))}\n`);
  }
  return exitCode;
}
