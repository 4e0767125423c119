import { expect, test } from 'vitest';
import {
  ConnectError,
  ConnectionLossError,
  errorForCode,
  InvalidArgumentError,
  NoNodeError,
  RequestTimeoutError,
} from '../../../zookeeper/src/errors.ts';
import { errorCodes } from '../../../zookeeper/src/protocol/constants.ts';
import { reportFailure } from '../../src/terminal/failure.ts';
import {
  CommandError,
  describeFailure,
  InterruptedError,
  UsageError,
} from '../../src/zookeeper-command/failure.ts';

const context = { path: '/a', operation: 'getData' };

test.each<[Error, number, string, string]>([
  [new UsageError('x'), 64, 'USAGE', 'x'],
  [new InvalidArgumentError('x'), 64, 'INVALID_ARGUMENT', 'x'],
  [new NoNodeError(context), 66, 'NO_NODE', '/a: there is no such node'],
  [
    errorForCode(errorCodes.nodeExists, context),
    ...([1, 'NODE_EXISTS', '/a: the node exists; `set` changes it'] as const),
  ],
  [
    errorForCode(errorCodes.badVersion, context),
    ...([1, 'BAD_VERSION', '/a: the node has another version; `stat` shows it'] as const),
  ],
  [errorForCode(errorCodes.notEmpty, context), 1, 'NOT_EMPTY', '; `rm -r` deletes'],
  [errorForCode(errorCodes.noAuth, context), 77, 'NO_AUTH', 'log in with --auth'],
  [
    errorForCode(errorCodes.authFailed, { operation: 'auth' }),
    ...([77, 'AUTH_FAILED', 'the server refuses the credentials; look at --auth'] as const),
  ],
  [new ConnectError('h:1', 500), 69, 'CONNECT_TIMEOUT', 'look at --server'],
  [new ConnectionLossError(true, context), 69, 'CONNECTION_LOSS', 'it may have been applied'],
  [new RequestTimeoutError(5, false, context), 69, 'REQUEST_TIMEOUT', '--timeout gives it longer'],
  [errorForCode(errorCodes.sessionExpired, context), 69, 'SESSION_EXPIRED', '/a: the session'],
  [errorForCode(-999, context), 1, 'SERVER_ERROR', '/a: the server answers with error -999'],
  [new CommandError('X', 74, 'y'), 74, 'X', 'y'],
  [new InterruptedError('SIGINT'), 130, 'INTERRUPTED', ''],
  [new InterruptedError('SIGTERM'), 143, 'INTERRUPTED', ''],
  [new InterruptedError('SIGHUP'), 129, 'INTERRUPTED', ''],
  [new InterruptedError('EPIPE'), 0, 'INTERRUPTED', ''],
  [new TypeError('x'), 70, 'INTERNAL', 'INCUMBENT_DEBUG=1'],
])('%s ends with %i', (error, exitCode, code, words) => {
  const failure = describeFailure(error);
  expect(failure).toMatchObject({ exitCode, code });
  expect(failure.message).toContain(words);
});

async function report(error: unknown, env: Record<string, string> = {}, json = false) {
  let text = '';
  const stderr = { write: (more: unknown) => (text += String(more)) };
  const how = { name: 'incumbent-zk', describe: describeFailure, oneLine: true };
  await reportFailure(error, { ...how, stderr, env, json });
  return text;
}

test('an error is one line, made harmless; the stack only with INCUMBENT_DEBUG', async () => {
  const error = new UsageError('"\u001b[2J"\nis none');
  expect(await report(error)).toBe('incumbent-zk: "\\x1b[2J"\\nis none\n');
  expect(await report(error, { INCUMBENT_DEBUG: '1' })).toMatch(/\n {4}at .*failure\.test\.ts/);
});

test('with --json it is an object', async () => {
  expect(JSON.parse(await report(new UsageError('x'), {}, true))).toEqual({
    error: { code: 'USAGE', message: 'x' },
  });
});

test('an interruption needs no words', async () => {
  expect(await report(new InterruptedError('SIGINT'))).toBe('');
});
