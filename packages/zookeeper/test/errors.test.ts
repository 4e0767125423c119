import { describe, expect, it } from 'vitest';
import {
  AuthError,
  BadVersionError,
  ClosedError,
  ConnectError,
  ConnectionLossError,
  errorForCode,
  InvalidArgumentError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  PacketTooLargeError,
  ProtocolError,
  QueueFullError,
  RefusedError,
  RequestTimeoutError,
  ServerError,
  SessionError,
  ZooKeeperError,
} from '../src/errors.ts';
import { errorCodes } from '../src/protocol/constants.ts';

const context = { path: '/a', operation: 'getData', zxid: 7n };

describe('errorForCode', () => {
  it.each([
    [errorCodes.noNode, NoNodeError, 'NoNodeError', 'NO_NODE', false],
    [errorCodes.nodeExists, NodeExistsError, 'NodeExistsError', 'NODE_EXISTS', false],
    [errorCodes.badVersion, BadVersionError, 'BadVersionError', 'BAD_VERSION', false],
    [errorCodes.notEmpty, NotEmptyError, 'NotEmptyError', 'NOT_EMPTY', false],
    [errorCodes.noAuth, AuthError, 'AuthError', 'NO_AUTH', false],
    [errorCodes.authFailed, AuthError, 'AuthError', 'AUTH_FAILED', false],
    [errorCodes.invalidAcl, AuthError, 'AuthError', 'INVALID_ACL', false],
    [errorCodes.sessionClosedRequireSasl, AuthError, 'AuthError', 'SASL_REQUIRED', false],
    [errorCodes.sessionExpired, SessionError, 'SessionError', 'SESSION_EXPIRED', false],
    [errorCodes.sessionMoved, SessionError, 'SessionError', 'SESSION_MOVED', true],
    [
      errorCodes.ephemeralOnLocalSession,
      SessionError,
      'SessionError',
      'EPHEMERAL_ON_LOCAL_SESSION',
      false,
    ],
    [
      errorCodes.connectionLoss,
      ConnectionLossError,
      'ConnectionLossError',
      'CONNECTION_LOSS',
      true,
    ],
    [
      errorCodes.noChildrenForEphemerals,
      RefusedError,
      'RefusedError',
      'NO_CHILDREN_FOR_EPHEMERALS',
      false,
    ],
    [errorCodes.notReadOnly, RefusedError, 'RefusedError', 'NOT_READ_ONLY', true],
    [errorCodes.quotaExceeded, RefusedError, 'RefusedError', 'QUOTA_EXCEEDED', false],
    [errorCodes.throttled, RefusedError, 'RefusedError', 'THROTTLED', true],
    [errorCodes.badArguments, RefusedError, 'RefusedError', 'BAD_ARGUMENTS', false],
    [errorCodes.unimplemented, RefusedError, 'RefusedError', 'UNIMPLEMENTED', false],
    [errorCodes.noWatcher, RefusedError, 'RefusedError', 'NO_WATCHER', false],
    [errorCodes.newConfigNoQuorum, RefusedError, 'RefusedError', 'NEW_CONFIG_NO_QUORUM', true],
    [errorCodes.reconfigInProgress, RefusedError, 'RefusedError', 'RECONFIG_IN_PROGRESS', true],
    [errorCodes.reconfigDisabled, RefusedError, 'RefusedError', 'RECONFIG_DISABLED', false],
    [errorCodes.systemError, ServerError, 'ServerError', 'SERVER_ERROR', false],
    [-999, ServerError, 'ServerError', 'SERVER_ERROR', false],
    [42, ServerError, 'ServerError', 'SERVER_ERROR', false],
  ])('code %i', (serverCode, type, name, code, retryable) => {
    const error = errorForCode(serverCode, context);
    expect(error).toBeInstanceOf(type);
    expect(error).toBeInstanceOf(ZooKeeperError);
    expect(error).toMatchObject({ name, code, retryable, serverCode, ...context });
    expect(error.message).toContain('getData /a');
  });

  it('makes an error of every code that the protocol knows', () => {
    for (const code of Object.values(errorCodes)) {
      if (code !== 0) expect(errorForCode(code, {})).toBeInstanceOf(ZooKeeperError);
    }
  });
});

describe('errors of the client', () => {
  it.each([
    [new ConnectError('h:1', 100), 'ConnectError', 'CONNECT_TIMEOUT', true, /h:1.*100 ms/],
    [
      new RequestTimeoutError(50, true, context),
      'RequestTimeoutError',
      'REQUEST_TIMEOUT',
      true,
      /50 ms; it may have been applied/,
    ],
    [new QueueFullError(3, 9, context), 'QueueFullError', 'QUEUE_FULL', true, /maxQueuedRequests/],
    [
      new PacketTooLargeError(9, 8, context),
      'PacketTooLargeError',
      'PACKET_TOO_LARGE',
      false,
      /jute\.maxbuffer/,
    ],
    [new ClosedError(context), 'ClosedError', 'CLOSED', false, /create another/],
    [new InvalidArgumentError('bad'), 'InvalidArgumentError', 'INVALID_ARGUMENT', false, /bad/],
    [new ProtocolError('odd'), 'ProtocolError', 'PROTOCOL', true, /odd/],
  ])('%s', (error, name, code, retryable, message) => {
    expect(error).toMatchObject({ name, code, retryable });
    expect(error.message).toMatch(message);
  });

  it('says whether a lost write may have been applied', () => {
    expect(new ConnectionLossError(true, context).message).toMatch(/may have been applied/);
    expect(new ConnectionLossError(false, context).message).not.toMatch(/may have/);
  });

  it('keeps the cause', () => {
    const cause = new Error('why');
    expect(new ConnectError('h:1', 100, cause).cause).toBe(cause);
    expect(new ConnectError('h:1', 100, cause).message).toContain('why');
  });
});
