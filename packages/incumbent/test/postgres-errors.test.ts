import { describe, expect, test } from 'vitest';
import { ClientEndedError } from '../src/backends/postgres/driver.ts';
import { asStoreError, wasOvertaken } from '../src/backends/postgres/errors.ts';
import { checkOptions } from '../src/backends/postgres/options.ts';
import {
  OperationTimeoutError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../src/base/errors.ts';

const { table } = checkOptions({});

function shown(
  code: string | undefined,
  message = 'what the server says',
  hasWorked = false,
  wasAllowed = false,
): Error {
  const error =
    code === undefined ? new Error(message) : Object.assign(new Error(message), { code });
  return asStoreError(error, table, hasWorked, wasAllowed) as Error;
}

describe('an error of PostgreSQL', () => {
  test.each([
    ['42703', /not one of elections \(what the server says\).*option `table`/],
    ['42P10', /not one of elections/],
    ['22P05', /use a database in UTF8/],
  ])('%s is nothing that waiting cures', (code, message) => {
    for (const hasWorked of [false, true]) {
      const error = shown(code, undefined, hasWorked, hasWorked);
      expect(error).toBeInstanceOf(StoreUnsuitableError);
      expect(error.message).toMatch(message);
    }
  });

  test.each([
    ['42P01', /no table "incumbent_election" .*election\.init\(\).*incumbent schema postgres/],
    ['3F000', /no table/],
    ['42501', /grant select, insert, update on "incumbent_election"/],
  ])('%s is final, also beside other tables that work, unless it was allowed', (code, message) => {
    for (const hasWorked of [false, true]) {
      expect(shown(code, undefined, hasWorked, false)).toBeInstanceOf(StoreUnsuitableError);
      expect(shown(code, undefined, hasWorked, false).message).toMatch(message);
    }
    const later = shown(code, undefined, true, true);
    expect(later).toBeInstanceOf(StoreUnavailableError);
    expect(later.message).toMatch(message);
  });

  test.each([
    ['25006', 'cannot execute UPDATE in a read-only transaction'],
    ['28P01', 'password authentication failed'],
    ['28000', 'no pg_hba.conf entry'],
    ['3D000', 'database does not exist'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'Host: db is not in the cert'],
    [undefined, 'The server does not support SSL connections'],
    [undefined, 'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'],
  ])('%s is a wrong setting at first, and an outage once it has worked', (code, message) => {
    expect(shown(code, message, false)).toBeInstanceOf(StoreUnsuitableError);
    expect(shown(code, message, false).message).toContain(message);
    expect(shown(code, message, true)).toBeInstanceOf(StoreUnavailableError);
  });

  test.each([
    ['57P01', ''],
    ['57P03', 'it is starting or stopping'],
    ['53300', 'raise max_connections'],
    ['55P03', 'a guarded write that has not ended'],
    ['40001', ''],
    ['ECONNREFUSED', ''],
    [undefined, ''],
  ])('%s is an outage', (code, wayOut) => {
    const error = shown(code);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error.message).toContain('what the server says');
    expect(error.message).toContain(wayOut);
    expect(error.cause).toBeInstanceOf(Error);
  });

  test('of another transaction that came between is a conflict, and nothing else is', () => {
    const codes = ['40001', '40P01', '23505', '55P03', '57P01', undefined];
    const overtaken = codes.filter((code) => wasOvertaken({ code }));
    expect(overtaken).toEqual(['40001', '40P01', '23505']);
    expect(wasOvertaken(undefined)).toBe(false);
  });

  test('has a text even where Node leaves it empty', () => {
    const each = [
      new Error('connect ECONNREFUSED ::1:5432'),
      new Error('connect ECONNREFUSED 127.0.0.1:5432'),
    ];
    const both = asStoreError(new AggregateError(each), table, true, true) as Error;
    expect(both.message).toContain('::1:5432, connect ECONNREFUSED 127.0.0.1:5432');
    expect(shown('ECONNRESET', '').message).toContain('ECONNRESET');
  });

  test('of our own stays unchanged; of a client that was ended it is final', () => {
    const own = new OperationTimeoutError('x', 1);
    expect(asStoreError(own, table, true, true)).toBe(own);
    const ended = asStoreError(new ClientEndedError('it was ended'), table, true, true);
    expect(ended).toBeInstanceOf(StoreUnsuitableError);
  });
});
