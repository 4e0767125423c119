import type { NotElectedReason } from 'incumbent';
import {
  ElectionEndedError,
  InvalidOptionError,
  InvalidTimingError,
  MisuseError,
  NotElectedError,
  OperationTimeoutError,
  RecordDamagedError,
  RecordTooNewError,
  RefusedError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from 'incumbent';
import { expect, test } from 'vitest';
import { CommandError, describeFailure, InterruptedError, UsageError } from '../src/failure.ts';
import { reportFailure } from '../src/terminal/failure.ts';

const notElected = (why: NotElectedReason) => new NotElectedError('x', 0, why);

test.each<[Error, number, string]>([
  [new UsageError('x'), 64, 'USAGE'],
  [new InvalidOptionError('x'), 64, 'INVALID_OPTION'],
  [new InvalidTimingError(['x']), 64, 'INVALID_TIMING'],
  [new StoreUnavailableError('x'), 69, 'STORE_UNAVAILABLE'],
  [new StoreUnsuitableError('x'), 69, 'STORE_UNSUITABLE'],
  [new OperationTimeoutError('x', 1), 69, 'OPERATION_TIMEOUT'],
  [new RecordDamagedError('/x', 'y'), 69, 'RECORD_DAMAGED'],
  [new RecordTooNewError('/x', 2, 1), 69, 'RECORD_TOO_NEW'],
  [new RefusedError('x'), 1, 'REFUSED'],
  [notElected({ kind: 'led', id: 'a', token: 3n }), 1, 'NOT_ELECTED'],
  [notElected({ kind: 'reserved', untilUnixMs: 0 }), 1, 'NOT_ELECTED'],
  [notElected({ kind: 'held', by: 'a', untilUnixMs: 0 }), 1, 'NOT_ELECTED'],
  [notElected({ kind: 'aside', untilUnixMs: 0 }), 1, 'NOT_ELECTED'],
  [notElected({ kind: 'lost', cause: new Error('x') }), 1, 'NOT_ELECTED'],
  [notElected({ kind: 'unreachable', cause: new Error('x') }), 69, 'NOT_ELECTED'],
  [
    notElected({ kind: 'settling', after: 'loss', sinceUnixMs: 0, untilUnixMs: 0 }),
    75,
    'NOT_ELECTED',
  ],
  [notElected({ kind: 'unhealthy', error: undefined }), 76, 'NOT_ELECTED'],
  [notElected({ kind: 'drained', untilUnixMs: 0 }), 77, 'NOT_ELECTED'],
  [new ElectionEndedError('x'), 1, 'ELECTION_ENDED'],
  [new MisuseError('x'), 1, 'MISUSE'],
  [new CommandError('LOST', 75, 'x'), 75, 'LOST'],
  [new InterruptedError('SIGINT'), 130, 'INTERRUPTED'],
  [new InterruptedError('SIGTERM'), 143, 'INTERRUPTED'],
  [new InterruptedError('SIGHUP'), 129, 'INTERRUPTED'],
  [Object.assign(new Error('no space'), { code: 'ENOSPC', syscall: 'write' }), 69, 'ENOSPC'],
  [new TypeError('x'), 70, 'INTERNAL'],
  [Object.assign(new Error('x'), { code: 'toString' }), 70, 'INTERNAL'],
])('%s ends with %i', (error, exitCode, code) => {
  expect(describeFailure(error)).toMatchObject({ exitCode, code });
});

async function report(error: unknown, env: Record<string, string> = {}, json = false) {
  let text = '';
  const stderr = { write: (more: unknown) => (text += String(more)) };
  const how = { name: 'incumbent', describe: describeFailure };
  await reportFailure(error, { ...how, stderr, env, json });
  return text;
}

test('an error is its sentence, made harmless; the stack only with INCUMBENT_DEBUG', async () => {
  const error = new RefusedError('"\u001b[2J" is not waiting');
  expect(await report(error)).toBe('incumbent: "\\x1b[2J" is not waiting\n');
  expect(await report(error, { INCUMBENT_DEBUG: '1' })).toMatch(/\n {4}at .*failure\.test\.ts/);
  expect(await report(error, { INCUMBENT_DEBUG: '' })).not.toContain('at ');
});

test('every broken rule of a timing is on a line of its own', async () => {
  expect(await report(new InvalidTimingError(['P1 a', 'P2 b']))).toBe(
    'incumbent: these timings cannot be kept:\n  P1 a\n  P2 b\n',
  );
});

test('with json it is an object', async () => {
  expect(JSON.parse(await report(new RefusedError('x'), {}, true))).toEqual({
    error: { code: 'REFUSED', message: 'x' },
  });
});

test('an interruption needs no words', async () => {
  expect(await report(new InterruptedError('SIGINT'))).toBe('');
});
