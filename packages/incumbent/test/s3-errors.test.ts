import { expect, test } from 'vitest';
import { isConflict, isMissing, Refusals } from '../src/backends/s3/errors.ts';
import { bareTag, writeTag } from '../src/backends/s3/etag.ts';
import { ageOf } from '../src/backends/s3/store.ts';
import { ElectionEndedError, StoreUnavailableError, StoreUnsuitableError } from '../src/index.ts';

/** As the SDK throws it. */
function answered(status: number, name: string, message = 'said so'): Error {
  return Object.assign(new Error(message), { name, $metadata: { httpStatusCode: status } });
}

function failed(code: string, name = 'Error'): Error {
  return Object.assign(new Error(`it failed: ${code}`), { name, code, $metadata: { attempts: 3 } });
}

const judge = (error: unknown) => new Refusals('b').error('write', 'e/x', error);

test.each([
  [answered(404, 'NoSuchBucket'), 'make the bucket, or name another one'],
  [answered(403, 'AccessDenied'), 'the rights s3:PutObject and s3:GetObject are needed'],
  [answered(401, 'Unauthorized'), 'the rights s3:PutObject and s3:GetObject are needed'],
  [answered(403, 'InvalidAccessKeyId'), 'look at the credentials and the region of the client'],
  [answered(403, 'SignatureDoesNotMatch'), 'look at the credentials and the region of the client'],
  [answered(400, 'ExpiredToken'), 'look at the credentials and the region of the client'],
  [answered(400, 'AuthorizationHeaderMalformed'), 'look at the credentials and the region'],
  [answered(301, 'PermanentRedirect'), 'the bucket is in another region'],
  [answered(404, 'NotFound'), 'look whether the endpoint is one of S3'],
  [answered(405, 'MethodNotAllowed'), 'cannot do what elections need: conditional writes'],
  [answered(501, 'NotImplemented'), 'cannot do what elections need: conditional writes'],
  [answered(400, 'InvalidArgument'), "requestChecksumCalculation: 'WHEN_REQUIRED'"],
  [
    answered(501, 'NotImplemented', "Header 'x-amz-checksum-crc32' not implemented"),
    "requestChecksumCalculation: 'WHEN_REQUIRED'",
  ],
  [answered(400, 'XAmzContentSHA256Mismatch'), "requestChecksumCalculation: 'WHEN_REQUIRED'"],
  [answered(413, 'EntityTooLarge'), 'look whether the endpoint is one of S3'],
  [
    failed('UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
    'look at the endpoint of the client, and whom it trusts',
  ],
  [failed('EPROTO'), 'look at the endpoint of the client'],
  [failed('', 'InvalidBucketName'), 'look at the name of the bucket'],
  [
    failed('ERR_INVALID_URL', 'TypeError'),
    'at the endpoint of the client, which begins with https://',
  ],
  [failed('', 'CredentialsProviderError'), 'give the client credentials and a region'],
  [new Error('Region is missing'), 'give the client credentials and a region'],
])('waiting does not cure %s', (error, words) => {
  const judged = judge(error) as Error;
  expect(judged).toBeInstanceOf(StoreUnsuitableError);
  expect(judged.message).toContain(words);
  expect(judged.message).toContain('the bucket "b"');
  expect(judged.message).toContain(error.message);
  // A call that was allowed before may be allowed again.
  const refusals = new Refusals('b');
  refusals.allowed('read');
  expect(refusals.error('write', 'e/x', error)).toBeInstanceOf(StoreUnsuitableError);
  refusals.allowed('write');
  const later = refusals.error('write', 'e/x', error) as Error;
  expect(later).toBeInstanceOf(StoreUnavailableError);
  expect(later.message).toContain('(it was allowed before)');
  expect(later.cause).toBe(error);
});

test.each([
  answered(503, 'SlowDown'),
  answered(500, 'InternalError'),
  answered(429, 'TooManyRequests'),
  answered(403, 'RequestTimeTooSkewed'),
  // The connection was reset in the middle of an answer that may have meant anything.
  Object.assign(answered(404, 'Error', 'aborted'), { code: 'ECONNRESET' }),
  Object.assign(answered(403, 'Error', 'aborted'), { code: 'ECONNRESET' }),
  failed('ECONNREFUSED'),
  failed('ENOTFOUND'),
  failed('ECONNRESET', 'TimeoutError'),
  new Error('something else'),
])('waiting may cure %s', (error) => {
  const judged = judge(error) as Error;
  expect(judged).toBeInstanceOf(StoreUnavailableError);
  expect(judged.message).toContain(error.message);
  expect(judged.cause).toBe(error);
});

test('an object that may not be read: the error names both rights that it takes', () => {
  const judged = new Refusals('b').error('read', 'e/x', answered(403, 'AccessDenied')) as Error;
  expect(judged.message).toContain('s3:GetObject');
  expect(judged.message).toContain('s3:ListBucket');
});

test('errors of ours stay unchanged, and any value may be thrown', () => {
  const ours = new ElectionEndedError('x');
  expect(judge(ours)).toBe(ours);
  for (const odd of ['a text', undefined, null, 7, {}]) {
    expect(judge(odd)).toBeInstanceOf(StoreUnavailableError);
  }
  const several = new AggregateError([failed('ECONNREFUSED'), failed('ENETUNREACH')], '');
  expect((judge(several) as Error).message).toMatch(/ECONNREFUSED.*ENETUNREACH/);
});

test.each([
  [412, 'PreconditionFailed', true, true],
  [409, 'ConditionalRequestConflict', true, true],
  // An object to replace may be gone. An object to make cannot be.
  [404, 'NoSuchKey', true, false],
  [404, 'NotFound', true, false],
  [404, 'NoSuchBucket', false, false],
  [403, 'AccessDenied', false, false],
  [500, 'InternalError', false, false],
])('%i %s is a conflict when replacing: %j, when making: %j', (status, name, replacing, making) => {
  expect(isConflict(answered(status, name), true)).toBe(replacing);
  expect(isConflict(answered(status, name), false)).toBe(making);
});

test('only what says so is missing', () => {
  expect(isMissing(answered(404, 'NoSuchKey'))).toBe(true);
  for (const error of [answered(404, 'NotFound'), answered(404, 'NoSuchBucket'), failed('X'), 7]) {
    expect(isMissing(error)).toBe(false);
  }
});

test.each([
  ['"abc"', 'abc'],
  ['W/"abc"', 'abc'],
  ['abc', 'abc'],
  ['"abc-2"', 'abc-2'],
  ['""', ''],
  ['"', '"'],
])('the ETag %s is %s', (given, bare) => {
  expect(bareTag(given)).toBe(bare);
});

test('an ETag is written as the endpoint wants it', () => {
  expect(writeTag('abc', 'quoted')).toBe('"abc"');
  expect(writeTag('abc', 'unquoted')).toBe('abc');
});

test('an age leaves out what whole seconds may hide, and is never negative', () => {
  const at = (seconds: number) => 1_700_000_000_000 + seconds * 1_000;
  const age = (writtenMs: number | undefined, sentMs: number | undefined) =>
    ageOf({ writtenMs, sentMs });
  expect(age(at(0), at(30))).toBe(28_000);
  expect(age(at(0), at(2))).toBe(0);
  expect(age(at(0), at(0))).toBe(0);
  expect(age(at(9), at(0))).toBe(0);
  expect(age(undefined, at(0))).toBeUndefined();
  expect(age(at(0), undefined)).toBeUndefined();
  expect(age(Number.NaN, at(0))).toBeUndefined();
});
