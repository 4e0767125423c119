import { describe, expect, test } from 'vitest';
import { asStoreError } from '../src/backends/redis/errors.ts';
import { ElectionError, StoreUnavailableError } from '../src/base/errors.ts';

function translate(message: string, more: object = {}, hasWorked = false): ElectionError {
  const error = Object.assign(new Error(message), more);
  const shown = asStoreError(error, 'incumbent:{jobs}', 'redis://db:6379', hasWorked);
  expect(shown).toBeInstanceOf(ElectionError);
  return shown as ElectionError;
}

describe('what Redis answers', () => {
  test.each([
    ["READONLY You can't write against a read only replica.", 'read-only replica'],
    ['LOADING Redis is loading the dataset in memory', 'it will pass'],
    ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", 'pass'],
    ['CLUSTERDOWN The cluster is down', 'it will pass'],
    ['BUSY Redis is busy running a script.', 'it will pass'],
    ['MOVED 3999 127.0.0.1:6381', 'use a cluster client'],
    [
      "OOM command not allowed when used memory > 'maxmemory'. script: x, on @user_script:1.",
      'full',
    ],
    ['MISCONF Redis is configured to save RDB snapshots', 'snapshot'],
    ['NOREPLICAS Not enough good replicas to write.', 'min-replicas-to-write'],
    // As Redis 6 writes what fails within a script.
    ['ERR Error running script (call to f_x): @user_script:7: -READONLY replica', 'replica'],
  ])('and will be otherwise is worth trying again: %s', (message, wayOut) => {
    const error = translate(message);
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(error.message).toContain(wayOut);
    expect(error.message).toContain(message);
    expect(error.cause).toBeInstanceOf(Error);
  });

  test.each([
    ['NOAUTH Authentication required.', 'log in'],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'log in'],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'docs/stores/redis.md'],
    [
      "ERR The user executing the script can't run this command or subcommand",
      'docs/stores/redis.md',
    ],
    ['NORUNID this server does not tell its run_id', 'started again'],
    ["ERR unknown command 'EVALSHA', with args beginning with: 'x'", 'scripts'],
  ])('and will answer for ever is not, unless it has worked: %s', (message, wayOut) => {
    const error = translate(message);
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE', retryable: false });
    expect(error.message).toContain(wayOut);
    const later = translate(message, {}, true);
    expect(later).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(later.message).toContain(wayOut);
    expect(later.message).toContain('it was allowed before');
  });

  test.each([
    ['WRONGTYPE Operation against a key holding the wrong kind of value', 'another type'],
    ['NOTOURS a hash of somebody else', 'somebody else'],
  ])('of a key that is not ours names the key: %s', (message, why) => {
    const error = translate(message);
    expect(error).toMatchObject({ code: 'RECORD_DAMAGED', location: 'the key "incumbent:{jobs}"' });
    expect(error.message).toContain(why);
  });
});

describe('the errors of client libraries', () => {
  test.each(['The client is closed', 'Connection is closed.'])(
    'of a client that is closed: %s',
    (message) => {
      const error = translate(message);
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' });
      expect(error.message).toContain('the client must be connected');
    },
  );

  test('of several attempts is all told, and never nothing', () => {
    const all = new AggregateError([new Error('connect ECONNREFUSED'), new Error('timed out')], '');
    expect((asStoreError(all, 'k', 'redis://db', false) as Error).message).toContain(
      'connect ECONNREFUSED, timed out',
    );
    const lastNodeError = new Error('getaddrinfo ENOTFOUND');
    expect(translate('Failed to refresh slots cache.', { lastNodeError }).message).toContain(
      'Failed to refresh slots cache., getaddrinfo ENOTFOUND',
    );
    expect(translate('').message).toContain('no reason was given');
  });

  test('of our own errors nothing is changed', () => {
    const own = new StoreUnavailableError('x');
    expect(asStoreError(own, 'k', 'redis://db', false)).toBe(own);
  });
});
