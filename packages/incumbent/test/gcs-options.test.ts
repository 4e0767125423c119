import { describe, expect, test } from 'vitest';
import { isAbsent, isConflict, Refusals } from '../src/backends/gcs/errors.ts';
import type { GcsOptions, StorageLike } from '../src/backends/gcs/index.ts';
import { gcs } from '../src/backends/gcs/index.ts';
import { leastOffsetMs, StoreClock } from '../src/backends/gcs/store-clock.ts';
import {
  createElection,
  InvalidOptionError,
  InvalidTimingError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../src/index.ts';

const storage: StorageLike = {
  bucket: () => ({
    file() {
      throw new Error('nothing is asked of a store before an election is held');
    },
  }),
};

function open(name: string, options: Partial<GcsOptions> = {}, timing = {}) {
  const backend = gcs(storage, { bucket: 'elections', ...options });
  return createElection({ name, backend, ...timing });
}

describe('options', () => {
  test.each<[object, string]>([
    [{ buckets: 'x' }, 'no option "buckets"; it knows bucket, prefix'],
    [{ bucket: undefined }, 'bucket undefined is no name of a bucket'],
    [{ bucket: 'gs://elections' }, 'without "gs://"'],
    [{ bucket: 'Elections' }, 'lower case letters'],
    [{ bucket: 'x' }, '3 to 222'],
    [{ prefix: 7 }, 'prefix must be a string, not 7'],
    [{ objectName: 'x' }, 'objectName must be a function'],
    [{ objectName: () => 'x', prefix: 'y' }, 'leave prefix out'],
    [{ readers: 'allUsers' }, 'readers must be a list'],
    [{ readers: [''] }, 'an entity of access control'],
    [{ acl: {} }, 'acl must be a list'],
    [{ acl: [null] }, 'an entity of access control'],
    [{ acl: [{ entity: 'allUsers', role: 'WRITER' }] }, 'the role of "allUsers" must be'],
    [{ maxClockSkew: 0 }, 'maxClockSkew must be longer than 0'],
    [{ maxClockSkew: 'x' }, 'maxClockSkew "x"'],
    [{ maxWritesPerSecond: 0 }, 'maxWritesPerSecond must be a number above 0'],
    [{ maxWritesPerSecond: '1' }, 'not "1"'],
    [{ age: 'no' }, 'age must be "on" or "off"'],
    [{ age: 'off', clockStep: '1s' }, 'leave one of them out'],
  ])('%j are refused by name', (options, message) => {
    const make = () => gcs(storage, { bucket: 'elections', ...options } as GcsOptions);
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(message);
  });

  test('and a client that is none', () => {
    for (const client of [undefined, null, {}, 'gs://x', { file() {} }]) {
      const make = () => gcs(client as never, { bucket: 'elections' });
      expect(make).toThrow('gcs() takes a Storage of @google-cloud/storage');
    }
    expect(() => gcs(storage, undefined as never)).toThrow('gcs() takes options');
  });

  test('an election’s object is called by its prefix and name, or as a function says', async () => {
    for (const name of ['billing', 'a/b', 'zoë', 'x'.repeat(200)]) await open(name).close();
    await open('..', { prefix: 'a/' }).close();
    expect(() => open('..')).toThrow('which no object may be called');
    expect(() => open('x', { prefix: '.well-known/acme-challenge/' })).toThrow('not below');
    expect(() => open('x', { prefix: 'p'.repeat(1_024) })).toThrow('(1025 bytes)');
    expect(() => open('x', { prefix: 'a\nb' })).toThrow('no line breaks');
    expect(() => open('x', { objectName: () => '' })).toThrow('objectName made ""');
    expect(() => open('x', { objectName: () => 7 as never })).toThrow('objectName made 7');
  });

  test('leases are as long as one write a second allows, unless more are', async () => {
    const election = open('billing');
    expect(election.timing).toMatchObject({
      leaseMs: 45_000,
      renewEveryMs: 9_000,
      pollEveryMs: 22_500,
    });
    await election.close();
    await open('billing', {}, { lease: '5s' }).close();
    expect(() => open('billing', {}, { lease: '4s' })).toThrow(InvalidTimingError);
    expect(() => open('billing', {}, { lease: '10s', renewEvery: '900ms' })).toThrow(
      'this store takes no more writes of one record',
    );
    expect(() => open('billing', { maxWritesPerSecond: 0.5 }, { lease: '9s' })).toThrow('10s');
    await open('billing', { maxWritesPerSecond: 5 }, { lease: '1s' }).close();
  });
});

describe('errors of the client', () => {
  const error = (verb: 'read' | 'write', fields: object, refusals = new Refusals('b')) =>
    refusals.error(verb, Object.assign(new Error(), fields));

  test.each<[object, string]>([
    [{ code: 404, message: 'The specified bucket does not exist.' }, 'make the bucket'],
    [{ code: '403', message: 'denied' }, 'roles/storage.objectUser'],
    [{ code: 401, message: 'Invalid Credentials' }, 'the credentials are missing'],
    [{ code: 412, message: 'x' }, '(412): x'],
    [{ message: 'Could not load the default credentials. Browse…' }, 'gcloud auth'],
    [{ code: '400', message: 'invalid_grant' }, '(400): invalid_grant'],
  ])('%j: waiting cures it only if it was allowed before', (fields, message) => {
    expect(error('read', fields)).toBeInstanceOf(StoreUnsuitableError);
    expect(error('read', fields).message).toContain(message);
    const refusals = new Refusals('b');
    refusals.allowed('read');
    expect(error('read', fields, refusals)).toBeInstanceOf(StoreUnavailableError);
    expect(error('write', fields, refusals)).toBeInstanceOf(StoreUnsuitableError);
  });

  test.each<[object, string]>([
    [{ code: 429, message: 'slow down' }, '(429): slow down'],
    [{ code: 503, message: '<html>\n  busy </html>' }, '(503): <html> busy </html>'],
    [{ code: 403, message: 'x', errors: [{ reason: 'userRateLimitExceeded' }] }, '(403)'],
    [{ code: 'ECONNREFUSED', message: 'connect ECONNREFUSED' }, 'was not reached'],
    [{ message: 'network timeout at: http://h' }, 'network timeout'],
    [{ code: 400, message: 'Provided CRC32C "x" doesn\'t match' }, 'damaged on its way'],
  ])('%j: comes again', (fields, message) => {
    expect(error('write', fields)).toBeInstanceOf(StoreUnavailableError);
    expect(error('write', fields).message).toContain(message);
  });

  test('an object that is not there is told from a bucket that is not', () => {
    expect(isAbsent({ code: 404, message: 'No such object: my-bucket/x' })).toBe(true);
    expect(isAbsent({ code: '404', message: 'Not Found' })).toBe(true);
    expect(isAbsent({ code: 404, message: 'The specified bucket does not exist.' })).toBe(false);
    expect(isAbsent({ code: 403, message: 'No such object: b/x' })).toBe(false);
    expect(isAbsent(undefined)).toBe(false);
  });

  test('412 and 409 are conflicts, and nothing else is', () => {
    expect([412, 409, '412', 404, 304, undefined].map((code) => isConflict({ code }))).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('comparing clocks', () => {
  // The store told 10 s, and it was so between 10 s and 11 s.
  test.each([
    [10_200, 10_400, 0],
    [9_900, 10_100, 0],
    [10_999, 11_200, 0],
    [11_500, 11_700, 500],
    [9_000, 9_600, -400],
    [5_000, 30_000, 0],
  ])('asked at %i, answered at %i: off by %i at the least', (sentMs, receivedMs, offsetMs) => {
    expect(leastOffsetMs(sentMs, receivedMs, 10_000)).toBe(offsetMs);
  });

  test('is told when it is more than Go programs may be off', () => {
    const told: string[] = [];
    const clock = new StoreClock(0.05, 5_000, ({ message }) => {
      told.push(message);
    });
    for (const offMs of [4_900, -4_900, 6_100, 6_100, 0, -5_100]) {
      clock.see({ monotonicMs: 0, wallMs: 1e12 + offMs }, 1e12 + offMs, 1e12);
    }
    clock.see({ monotonicMs: 0, wallMs: 0 }, 0, undefined);
    expect(told).toEqual([
      expect.stringContaining('at least 5.1s ahead of'),
      expect.stringContaining('at least 5.1s behind'),
    ]);
  });

  test('the store’s time is never told too early, whatever our own clocks do', () => {
    const clock = new StoreClock(0.05, 5_000, () => {});
    const at = (monotonicMs: number, wallMs = 0) => ({ monotonicMs, wallMs });
    expect(clock.latestMs(at(0))).toBeUndefined();
    // It was 10.999 s, and told 10 s, at the moment that the request was sent.
    clock.see(at(500), 700, 10_000);
    expect(clock.latestMs(at(500))).toBe(11_000);
    expect(clock.latestMs(at(1_450))).toBe(12_000);
    // After a suspension of an hour, and when the wall clock was set back by one.
    expect(clock.latestMs(at(510, 3_600_000))).toBeGreaterThan(3_600_000);
    expect(clock.latestMs(at(1_450, -3_600_000))).toBe(12_000);
    clock.see(at(2_400), 0, undefined);
    expect(clock.latestMs(at(2_400))).toBe(13_000);
    clock.see(at(2_400), 0, 12_500);
    expect(clock.latestMs(at(2_400))).toBe(13_500);
  });
});
