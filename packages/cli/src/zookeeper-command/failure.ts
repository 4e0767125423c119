import type { ZooKeeperErrorCode } from '../errors.ts';
import { ZooKeeperError } from '../errors.ts';
import type { Environment, Output, SignalName } from './context.ts';
import { toJson, visible } from './output/text.ts';

/** What the command ends with. Those above 63 are the ones of sysexits(3). */
export const exitCodes = {
  ok: 0,
  /** The server refuses. */
  no: 1,
  usage: 64,
  /** No such node, or no such file. */
  missing: 66,
  unavailable: 69,
  /** Our own mistake. */
  internal: 70,
  /** What we were asked for cannot be written to stdout. */
  output: 74,
  /** The ACL or the credentials do not allow it. */
  permission: 77,
} as const;

/** The exit code of an error of the client, and what a person can do about it. */
const outcomes: Readonly<Record<ZooKeeperErrorCode, readonly [exitCode: number, todo?: string]>> = {
  NO_NODE: [exitCodes.missing],
  NODE_EXISTS: [exitCodes.no, '`set` changes it'],
  BAD_VERSION: [exitCodes.no, '`stat` shows it'],
  NOT_EMPTY: [exitCodes.no, '`rm -r` deletes what is below it too'],
  NO_AUTH: [exitCodes.permission, 'log in with --auth digest:USER:PASSWORD or --sasl'],
  AUTH_FAILED: [exitCodes.permission, 'look at --auth and --sasl'],
  INVALID_ACL: [exitCodes.no, 'an entry of the scheme `auth` needs --auth'],
  SASL_REQUIRED: [exitCodes.permission, 'give --sasl USER:PASSWORD'],
  SESSION_EXPIRED: [exitCodes.unavailable],
  SESSION_MOVED: [exitCodes.unavailable, 'try again'],
  EPHEMERAL_ON_LOCAL_SESSION: [exitCodes.no],
  CONNECTION_LOSS: [exitCodes.unavailable, 'try again'],
  CONNECT_TIMEOUT: [exitCodes.unavailable, 'look at --server, --timeout, and `incumbent-zk srvr`'],
  REQUEST_TIMEOUT: [exitCodes.unavailable, '--timeout gives it longer'],
  QUEUE_FULL: [exitCodes.internal],
  PACKET_TOO_LARGE: [exitCodes.no],
  CLOSED: [exitCodes.internal],
  INVALID_ARGUMENT: [exitCodes.usage],
  NO_CHILDREN_FOR_EPHEMERALS: [exitCodes.no],
  NOT_READ_ONLY: [exitCodes.unavailable, 'without --read-only, a server with a quorum is sought'],
  QUOTA_EXCEEDED: [exitCodes.no],
  THROTTLED: [exitCodes.unavailable],
  BAD_ARGUMENTS: [exitCodes.no],
  UNIMPLEMENTED: [exitCodes.no, 'it may be too old, or configured without it'],
  NO_WATCHER: [exitCodes.no],
  NEW_CONFIG_NO_QUORUM: [exitCodes.no],
  RECONFIG_IN_PROGRESS: [exitCodes.no],
  RECONFIG_DISABLED: [exitCodes.no],
  TRANSACTION_FAILED: [exitCodes.no],
  TOO_MANY_NODES: [exitCodes.no, '--max-nodes allows more'],
  PROTOCOL: [
    exitCodes.unavailable,
    'is it a ZooKeeper server, and with zks:// one that speaks TLS?',
  ],
  SERVER_ERROR: [exitCodes.no],
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

/** Why `context.signal` aborted. Reported with no words. */
export class InterruptedError extends CommandError {
  override readonly name: string = 'InterruptedError';
  constructor(cause: SignalName | 'EPIPE') {
    // Whoever read our output is gone (`incumbent-zk ls -R / | head -1`) and has what they wanted.
    const exitCode = cause === 'EPIPE' ? exitCodes.ok : 128 + signalNumbers[cause];
    super('INTERRUPTED', exitCode, `interrupted by ${cause}`);
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
  if (error instanceof ZooKeeperError) {
    const [exitCode, todo] = outcomes[error.code];
    const sentence = withoutOperation(error);
    return { exitCode, code: error.code, message: todo ? `${sentence}; ${todo}` : sentence };
  }
  return {
    exitCode: exitCodes.internal,
    code: 'INTERNAL',
    message: `${message} (this should not happen; INCUMBENT_DEBUG=1 shows where it did)`,
  };
}

/** Which request of the protocol it was is of no use to a person who knows the command. */
function withoutOperation({ message, operation }: ZooKeeperError): string {
  const prefix = operation ?? 'zookeeper';
  return message.startsWith(prefix) ? message.slice(prefix.length).replace(/^:? /, '') : message;
}

/**
 * Tells people, or with `json` programs, what went wrong: on one line.
 * @returns the exit code
 */
export async function reportFailure(
  error: unknown,
  to: { readonly stderr: Output; readonly env: Environment; readonly json: boolean },
): Promise<number> {
  const { exitCode, code, message } = describeFailure(error);
  if (error instanceof InterruptedError) return exitCode;
  if (to.json) to.stderr.write(`${toJson({ error: { code, message } })}\n`);
  else to.stderr.write(`incumbent-zk: ${visible(message)}\n`);
  if (to.env['INCUMBENT_DEBUG']) {
    const { inspect } = await import('node:util');
    to.stderr.write(`${inspect(error)}\n`);
  }
  return exitCode;
}
