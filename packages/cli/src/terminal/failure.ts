import type { Environment, Output, SignalName } from './host.ts';

/** Exit codes that mean the same for all of our commands. Those above 63 are the ones of sysexits(3). */
export const commonExitCodes = {
  ok: 0,
  /** Our own mistake. */
  internal: 70,
  /** The result cannot be written to stdout. */
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
  /** A second line for people; undefined: that of the command. */
  readonly hint: string | undefined;

  constructor(message: string, exitCode = 64, hint?: string) {
    super('USAGE', exitCode, message);
    this.hint = hint;
  }
}

const signalNumbers: Readonly<Record<SignalName, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };

/** Why `context.signal` aborted. Reported with no words. */
export class InterruptedError extends CommandError {
  override readonly name: string = 'InterruptedError';
  constructor(cause: SignalName | 'EPIPE') {
    // The reader of our output is gone (`incumbent-zk ls -R / | head -1`) and has what it wanted.
    const exitCode = cause === 'EPIPE' ? commonExitCodes.ok : 128 + signalNumbers[cause];
    super('INTERRUPTED', exitCode, `interrupted by ${cause}`);
  }
}

/** An error as the exit code and the words it is reported with. */
export interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly message: string;
}

/** Of an error that the command did not expect. */
export function internalFailure(message: string): Failure {
  return {
    exitCode: commonExitCodes.internal,
    code: 'INTERNAL',
    message: `${message} (this should not happen; INCUMBENT_DEBUG=1 shows where it did)`,
  };
}

export interface Reporting {
  /** Of the command. */
  readonly name: string;
  readonly stderr: Output;
  readonly env: Environment;
  /** For programs: an object on one line. */
  readonly json: boolean;
  /** A second line for people. */
  readonly hint?: string | undefined;
  /** Line breaks of the message are shown as escapes. */
  readonly oneLine?: boolean | undefined;
  readonly describe: (error: unknown) => Failure;
  /** Takes secrets out of what is shown for debugging. */
  readonly redact?: ((text: string) => string) | undefined;
}

/**
 * Tells people, or with `json` programs, what went wrong.
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
