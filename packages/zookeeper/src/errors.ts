import { errorCodes } from './protocol/constants.ts';

/** The values of `ZooKeeperError.code`. */
export type ZooKeeperErrorCode =
  | 'NO_NODE'
  | 'NODE_EXISTS'
  | 'BAD_VERSION'
  | 'NOT_EMPTY'
  | 'NO_AUTH'
  | 'AUTH_FAILED'
  | 'INVALID_ACL'
  | 'SASL_REQUIRED'
  | 'SESSION_EXPIRED'
  | 'SESSION_MOVED'
  | 'EPHEMERAL_ON_LOCAL_SESSION'
  | 'CONNECTION_LOSS'
  | 'CONNECT_TIMEOUT'
  | 'REQUEST_TIMEOUT'
  | 'QUEUE_FULL'
  | 'PACKET_TOO_LARGE'
  | 'CLOSED'
  | 'INVALID_ARGUMENT'
  | 'NO_CHILDREN_FOR_EPHEMERALS'
  | 'NOT_READ_ONLY'
  | 'QUOTA_EXCEEDED'
  | 'THROTTLED'
  | 'BAD_ARGUMENTS'
  | 'UNIMPLEMENTED'
  | 'NO_WATCHER'
  | 'NEW_CONFIG_NO_QUORUM'
  | 'RECONFIG_IN_PROGRESS'
  | 'RECONFIG_DISABLED'
  | 'TRANSACTION_FAILED'
  | 'TOO_MANY_NODES'
  | 'PROTOCOL'
  | 'SERVER_ERROR';

/** The context of the call that failed. */
export interface ErrorContext {
  /** The path as the caller gave it, without the chroot. */
  readonly path?: string | undefined;
  /** The request's name in the protocol, such as `getData`. */
  readonly operation?: string | undefined;
  /** The server's last transaction when it refused. */
  readonly zxid?: bigint | undefined;
  /** The code in the reply's header. */
  readonly serverCode?: number | undefined;
  /** The index of the operation in a multi, from 0. */
  readonly index?: number | undefined;
  readonly cause?: unknown;
}

/**
 * Base class of everything the client throws. Branch on the class, on `code`, or on `retryable`.
 */
export class ZooKeeperError extends Error {
  override readonly name: string = 'ZooKeeperError';
  readonly code: ZooKeeperErrorCode;
  /** true if the same call can succeed later. */
  readonly retryable: boolean;
  /**
   * The path as the caller gave it, without the chroot. Absent where it does not apply, like all
   * fields below.
   */
  declare readonly path?: string;
  /** The request's name in the protocol, such as `getData`. */
  declare readonly operation?: string;
  /** The server's last transaction when it refused. */
  declare readonly zxid?: bigint;
  /** The server's error code. */
  declare readonly serverCode?: number;
  /** In a multi: the index of the operation that failed, from 0. */
  declare readonly index?: number;

  constructor(
    code: ZooKeeperErrorCode,
    message: string,
    context: ErrorContext = {},
    retryable = false,
  ) {
    super(message, context.cause === undefined ? undefined : { cause: context.cause });
    this.code = code;
    this.retryable = retryable;
    // Fields that do not apply are left out, because errors are printed with all their fields.
    if (context.path !== undefined) this.path = context.path;
    if (context.operation !== undefined) this.operation = context.operation;
    if (context.zxid !== undefined) this.zxid = context.zxid;
    if (context.serverCode !== undefined) this.serverCode = context.serverCode;
    if (context.index !== undefined) this.index = context.index;
  }
}

/** Code `NO_NODE`. There is no such node; for a create: no parent. */
export class NoNodeError extends ZooKeeperError {
  override readonly name: string = 'NoNodeError';
  constructor(context: ErrorContext) {
    const what = context.operation?.startsWith('create')
      ? 'there is no such node above it (ensurePath makes it, and the chroot)'
      : 'there is no such node';
    super('NO_NODE', `${subject(context)}: ${what}`, context);
  }
}

/** Code `NODE_EXISTS`. */
export class NodeExistsError extends ZooKeeperError {
  override readonly name: string = 'NodeExistsError';
  constructor(context: ErrorContext) {
    super('NODE_EXISTS', `${subject(context)}: the node exists`, context);
  }
}

/** Code `BAD_VERSION`. The node has another version than the one that was demanded. */
export class BadVersionError extends ZooKeeperError {
  override readonly name: string = 'BadVersionError';
  constructor(context: ErrorContext) {
    super('BAD_VERSION', `${subject(context)}: the node has another version`, context);
  }
}

/** Code `NOT_EMPTY`. A node with children cannot be deleted. */
export class NotEmptyError extends ZooKeeperError {
  override readonly name: string = 'NotEmptyError';
  constructor(context: ErrorContext) {
    super('NOT_EMPTY', `${subject(context)}: the node has children`, context);
  }
}

/**
 * Codes `NO_AUTH` (the ACL denies it), `AUTH_FAILED` (the credentials are refused), `INVALID_ACL`,
 * and `SASL_REQUIRED`.
 */
export class AuthError extends ZooKeeperError {
  override readonly name: string = 'AuthError';
}

/**
 * Codes `SESSION_EXPIRED` (the session is gone, with its ephemeral nodes), `SESSION_MOVED`, and
 * `EPHEMERAL_ON_LOCAL_SESSION`.
 */
export class SessionError extends ZooKeeperError {
  override readonly name: string = 'SessionError';
}

/** Code `CONNECTION_LOSS`. The connection ended before the reply came. */
export class ConnectionLossError extends ZooKeeperError {
  override readonly name: string = 'ConnectionLossError';
  /** Whether a write may have been applied all the same. Always false for reads. */
  readonly maybeApplied: boolean;
  constructor(maybeApplied: boolean, context: ErrorContext) {
    super(
      'CONNECTION_LOSS',
      `${subject(context)}: the connection was lost before the reply` +
        (maybeApplied ? '; it may have been applied' : ''),
      context,
      true,
    );
    this.maybeApplied = maybeApplied;
  }
}

/**
 * Code `CONNECT_TIMEOUT`. No server gave a session in time. The `cause` is the error of the last
 * attempt.
 */
export class ConnectError extends ZooKeeperError {
  override readonly name: string = 'ConnectError';
  constructor(hosts: string, timeoutMs: number, cause?: unknown) {
    const why = cause instanceof Error ? `; the last attempt: ${cause.message}` : '';
    super(
      'CONNECT_TIMEOUT',
      `none of ${hosts} gave a session within ${Math.round(timeoutMs)} ms${why}`,
      { cause },
      true,
    );
  }
}

/** Code `REQUEST_TIMEOUT`. The call's own time is over. */
export class RequestTimeoutError extends ZooKeeperError {
  override readonly name: string = 'RequestTimeoutError';
  /**
   * Whether a write may have been applied, or may still be. false if it was never sent, and for
   * reads.
   */
  readonly maybeApplied: boolean;
  constructor(timeoutMs: number, maybeApplied: boolean, context: ErrorContext) {
    super(
      'REQUEST_TIMEOUT',
      `${subject(context)}: not answered within ${Math.round(timeoutMs)} ms` +
        (maybeApplied ? '; it may have been applied' : ''),
      context,
      true,
    );
    this.maybeApplied = maybeApplied;
  }
}

/**
 * Code `QUEUE_FULL`. More calls wait than `maxQueuedRequests` or `maxQueuedBytes` allow. Nothing
 * was sent.
 */
export class QueueFullError extends ZooKeeperError {
  override readonly name: string = 'QueueFullError';
  constructor(requests: number, bytes: number, context: ErrorContext) {
    super(
      'QUEUE_FULL',
      `${subject(context)}: ${requests} requests of ${bytes} bytes wait already; ` +
        'await some of them, or raise maxQueuedRequests or maxQueuedBytes',
      context,
      true,
    );
  }
}

/** Code `PACKET_TOO_LARGE`. The request is longer than `maxRequestBytes`. Nothing was sent. */
export class PacketTooLargeError extends ZooKeeperError {
  override readonly name: string = 'PacketTooLargeError';
  constructor(bytes: number, limit: number, context: ErrorContext) {
    super(
      'PACKET_TOO_LARGE',
      `${subject(context)}: a request of ${bytes} bytes; the server takes ${limit} ` +
        '(its jute.maxbuffer, here maxRequestBytes)',
      context,
    );
  }
}

/** Code `CLOSED`. The client was closed; create another one. */
export class ClosedError extends ZooKeeperError {
  override readonly name: string = 'ClosedError';
  constructor(context: ErrorContext = {}) {
    super('CLOSED', `${subject(context)}: this client is closed; create another one`, context);
  }
}

/** Code `INVALID_ARGUMENT`. An argument or option cannot be used. Nothing was sent. */
export class InvalidArgumentError extends ZooKeeperError {
  override readonly name: string = 'InvalidArgumentError';
  constructor(message: string, context: ErrorContext = {}) {
    super('INVALID_ARGUMENT', message, context);
  }
}

/**
 * The server understood the request and refuses it. The `code` says why:
 * `NO_CHILDREN_FOR_EPHEMERALS`, `NOT_READ_ONLY`, `QUOTA_EXCEEDED`, `THROTTLED`, `NO_WATCHER` and
 * others.
 */
export class RefusedError extends ZooKeeperError {
  override readonly name: string = 'RefusedError';
}

/** Code `PROTOCOL`. The bytes from the server are not ZooKeeper's protocol. */
export class ProtocolError extends ZooKeeperError {
  override readonly name: string = 'ProtocolError';
  constructor(message: string, context: ErrorContext = {}) {
    super('PROTOCOL', message, context, true);
  }
}

/** Code `SERVER_ERROR`. The server's error has no class of its own; `serverCode` has its number. */
export class ServerError extends ZooKeeperError {
  override readonly name: string = 'ServerError';
  constructor(context: ErrorContext) {
    super(
      'SERVER_ERROR',
      `${subject(context)}: the server answers with error ${context.serverCode}`,
      context,
    );
  }
}

/** The error of a call whose session has expired. */
export function sessionExpired(context: ErrorContext): SessionError {
  return new SessionError(
    'SESSION_EXPIRED',
    `${subject(context)}: the session has expired`,
    context,
  );
}

/** The error of a call whose credentials no server accepts. */
export function credentialsRefused(context: ErrorContext): AuthError {
  return new AuthError(
    'AUTH_FAILED',
    `${context.operation ?? 'zookeeper'}: the server refuses the credentials`,
    { ...context, serverCode: errorCodes.authFailed },
  );
}

const refusals: ReadonlyMap<number, readonly [ZooKeeperErrorCode, string, boolean]> = new Map([
  [
    errorCodes.noChildrenForEphemerals,
    ['NO_CHILDREN_FOR_EPHEMERALS', 'an ephemeral node cannot have children', false],
  ],
  [errorCodes.notReadOnly, ['NOT_READ_ONLY', 'this server has no quorum and only reads', true]],
  [errorCodes.quotaExceeded, ['QUOTA_EXCEEDED', 'a quota would be exceeded', false]],
  [errorCodes.throttled, ['THROTTLED', 'the server is throttling; retry later', true]],
  [errorCodes.badArguments, ['BAD_ARGUMENTS', 'the server refuses the arguments', false]],
  [errorCodes.unimplemented, ['UNIMPLEMENTED', 'the server does not know this request', false]],
  [errorCodes.noWatcher, ['NO_WATCHER', 'there is no such watch', false]],
  [
    errorCodes.newConfigNoQuorum,
    ['NEW_CONFIG_NO_QUORUM', 'no quorum of the new configuration is in sync', true],
  ],
  [
    errorCodes.reconfigInProgress,
    ['RECONFIG_IN_PROGRESS', 'another reconfiguration is under way', true],
  ],
  [
    errorCodes.reconfigDisabled,
    ['RECONFIG_DISABLED', 'the server runs without reconfigEnabled=true', false],
  ],
] as const);

const authErrors: ReadonlyMap<number, readonly [ZooKeeperErrorCode, string]> = new Map([
  [errorCodes.noAuth, ['NO_AUTH', 'the ACL does not allow it']],
  [errorCodes.authFailed, ['AUTH_FAILED', 'the server refuses the credentials']],
  [errorCodes.invalidAcl, ['INVALID_ACL', 'the server refuses the ACL']],
  [
    errorCodes.sessionClosedRequireSasl,
    ['SASL_REQUIRED', 'the server takes only sessions that authenticate with SASL'],
  ],
] as const);

/**
 * The error for a code in a reply. Every number has one, because a server may be newer than this
 * client.
 */
export function errorForCode(serverCode: number, context: ErrorContext): ZooKeeperError {
  const full: ErrorContext = { ...context, serverCode };
  switch (serverCode) {
    case errorCodes.noNode:
      return new NoNodeError(full);
    case errorCodes.nodeExists:
      return new NodeExistsError(full);
    case errorCodes.badVersion:
      return new BadVersionError(full);
    case errorCodes.notEmpty:
      return new NotEmptyError(full);
    case errorCodes.sessionExpired:
    case errorCodes.unknownSession:
      return sessionExpired(full);
    case errorCodes.sessionMoved:
      return new SessionError(
        'SESSION_MOVED',
        `${subject(full)}: the session has moved to another server`,
        full,
        true,
      );
    case errorCodes.ephemeralOnLocalSession:
      return new SessionError(
        'EPHEMERAL_ON_LOCAL_SESSION',
        `${subject(full)}: a local session cannot own ephemeral nodes`,
        full,
      );
    case errorCodes.connectionLoss:
      return new ConnectionLossError(true, full);
    default: {
      const auth = authErrors.get(serverCode);
      if (auth !== undefined) {
        return new AuthError(auth[0], `${subject(full)}: ${auth[1]}`, full);
      }
      const refusal = refusals.get(serverCode);
      if (refusal === undefined) return new ServerError(full);
      return new RefusedError(refusal[0], `${subject(full)}: ${refusal[1]}`, full, refusal[2]);
    }
  }
}

function subject({ operation, path }: ErrorContext): string {
  if (operation === undefined) return path ?? 'zookeeper';
  const call = operation === 'create2' ? 'create' : operation; // the caller called `create`
  return path === undefined ? call : `${call} ${path}`;
}
