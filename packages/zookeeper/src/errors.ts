import { errorCodes } from './protocol/constants.ts';

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

/** What an error says about the call that failed. */
export interface ErrorContext {
  /** The path as the caller gave it: without the chroot. */
  readonly path?: string | undefined;
  /** The request's name in the protocol, such as `getData`. */
  readonly operation?: string | undefined;
  /** The server's last transaction when it refused. */
  readonly zxid?: bigint | undefined;
  /** The code in the reply's header. */
  readonly serverCode?: number | undefined;
  /** Index of the operation in a multi. */
  readonly index?: number | undefined;
  readonly cause?: unknown;
}

/** Base of everything the client throws. Branch on the class, `code` or `retryable`. */
export class ZooKeeperError extends Error {
  override readonly name: string = 'ZooKeeperError';
  readonly code: ZooKeeperErrorCode;
  /** True when the same call can succeed later. */
  readonly retryable: boolean;
  declare readonly path?: string;
  declare readonly operation?: string;
  declare readonly zxid?: bigint;
  declare readonly serverCode?: number;
  /** In a multi: which operation failed, from 0. */
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
    // What does not apply is not there: errors are printed with all that they have.
    if (context.path !== undefined) this.path = context.path;
    if (context.operation !== undefined) this.operation = context.operation;
    if (context.zxid !== undefined) this.zxid = context.zxid;
    if (context.serverCode !== undefined) this.serverCode = context.serverCode;
    if (context.index !== undefined) this.index = context.index;
  }
}

export class NoNodeError extends ZooKeeperError {
  override readonly name: string = 'NoNodeError';
  constructor(context: ErrorContext) {
    const what = context.operation?.startsWith('create')
      ? 'there is no such node above it (ensurePath makes it, and the chroot)'
      : 'there is no such node';
    super('NO_NODE', `${subject(context)}: ${what}`, context);
  }
}

export class NodeExistsError extends ZooKeeperError {
  override readonly name: string = 'NodeExistsError';
  constructor(context: ErrorContext) {
    super('NODE_EXISTS', `${subject(context)}: the node exists`, context);
  }
}

export class BadVersionError extends ZooKeeperError {
  override readonly name: string = 'BadVersionError';
  constructor(context: ErrorContext) {
    super('BAD_VERSION', `${subject(context)}: the node has another version`, context);
  }
}

export class NotEmptyError extends ZooKeeperError {
  override readonly name: string = 'NotEmptyError';
  constructor(context: ErrorContext) {
    super('NOT_EMPTY', `${subject(context)}: the node has children`, context);
  }
}

/** NO_AUTH, AUTH_FAILED, INVALID_ACL, SASL_REQUIRED: who we are is not enough, or not believed. */
export class AuthError extends ZooKeeperError {
  override readonly name: string = 'AuthError';
}

/** SESSION_EXPIRED, SESSION_MOVED, EPHEMERAL_ON_LOCAL_SESSION. */
export class SessionError extends ZooKeeperError {
  override readonly name: string = 'SessionError';
}

/** The connection ended before the reply came. */
export class ConnectionLossError extends ZooKeeperError {
  override readonly name: string = 'ConnectionLossError';
  /** Whether a write may have been applied nevertheless. False for requests that only read. */
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

/** `connect` reached no server within its bound. */
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

/** A call's own bound passed. */
export class RequestTimeoutError extends ZooKeeperError {
  override readonly name: string = 'RequestTimeoutError';
  /** Whether a write may have been applied, or may still be. False if it was never sent. */
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

/** More calls wait than `maxQueuedRequests` or `maxQueuedBytes` allow. Nothing was sent. */
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

/** The request is longer than the server takes. Nothing was sent. */
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

/** The client was closed; create another one. */
export class ClosedError extends ZooKeeperError {
  override readonly name: string = 'ClosedError';
  constructor(context: ErrorContext = {}) {
    super('CLOSED', `${subject(context)}: this client is closed; create another one`, context);
  }
}

/** An argument or option that cannot be used. Nothing was sent. */
export class InvalidArgumentError extends ZooKeeperError {
  override readonly name: string = 'InvalidArgumentError';
  constructor(message: string, context: ErrorContext = {}) {
    super('INVALID_ARGUMENT', message, context);
  }
}

/** The server understood and refuses: read-only, quota, throttled, ephemerals have no children … */
export class RefusedError extends ZooKeeperError {
  override readonly name: string = 'RefusedError';
}

/** What came from the server is not ZooKeeper's protocol. */
export class ProtocolError extends ZooKeeperError {
  override readonly name: string = 'ProtocolError';
  constructor(message: string, context: ErrorContext = {}) {
    super('PROTOCOL', message, context, true);
  }
}

/** An error code of the server that has no class of its own; `serverCode` has the number. */
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

/** A session that is gone took the call with it. */
export function sessionExpired(context: ErrorContext): SessionError {
  return new SessionError(
    'SESSION_EXPIRED',
    `${subject(context)}: the session has expired`,
    context,
  );
}

/** No session is given for such credentials. */
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

/** The error for a code in a reply. Any number makes one: a server may be newer than we are. */
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
  return path === undefined ? operation : `${operation} ${path}`;
}
