import type { ZooKeeperErrorCode } from '@incumbent/zookeeper';
import type { Failure } from '../terminal/failure.ts';
import { CommandError, internalFailure } from '../terminal/failure.ts';

export { CommandError, InterruptedError, UsageError } from '../terminal/failure.ts';

/** The exit codes of the command. Those above 63 are the ones of sysexits(3). */
export const exitCodes = {
  ok: 0,
  /** The server refuses. */
  no: 1,
  usage: 64,
  /** No such node, or no such file. */
  missing: 66,
  unavailable: 69,
  /** A defect of the command itself. */
  internal: 70,
  /** The requested output cannot be written to stdout. */
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

export function describeFailure(error: unknown): Failure {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof CommandError) return { exitCode: error.exitCode, code: error.code, message };
  if (isOfClient(error)) {
    const [exitCode, todo] = outcomes[error.code];
    const sentence = withoutOperation(error);
    return { exitCode, code: error.code, message: todo ? `${sentence}; ${todo}` : sentence };
  }
  return internalFailure(message);
}

interface ClientError extends Error {
  readonly code: ZooKeeperErrorCode;
  readonly operation?: string | undefined;
}

/** By its code, not by its class: the client is not loaded for `--help`. */
function isOfClient(error: unknown): error is ClientError {
  return (
    error instanceof Error &&
    'retryable' in error &&
    'code' in error &&
    Object.hasOwn(outcomes, String(error.code))
  );
}

/** Which request of the protocol it was is of no use to a person who knows the command. */
function withoutOperation({ message, operation }: ClientError): string {
  // The client's messages name the call: `create2` of the protocol is its `create`.
  const prefix = operation === 'create2' ? 'create' : (operation ?? 'zookeeper');
  return message.startsWith(prefix) ? message.slice(prefix.length).replace(/^:? /, '') : message;
}
