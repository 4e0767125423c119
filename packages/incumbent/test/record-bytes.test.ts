// The bytes of records that stand in stores: docs/reference/versions.md says how long they are read.
import { describe, expect, test } from 'vitest';
import { RecordDamagedError, RecordTooNewError } from '../src/base/errors.ts';
import { decodeLeaseRecord, encodeLeaseRecord } from '../src/record/lease-record.ts';
import { decodeQueueRecord, encodeQueueRecord } from '../src/record/queue-record.ts';

const candidate =
  '"id":"host-7","incarnation":"9f2c","addresses":["10.0.0.7:50051"],"metadata":{"zone":"1"}';
const request = '"request":{"kind":"transfer","nonce":"r1","to":"host-8"}';
const held = '"held":{"ms":300000,"untilUnixMs":1795000300000}';
/** The fields that both records end with. */
const shared = [
  '"reservation":{"for":"host-8","reserveMs":6000,"untilUnixMs":1795000006000}',
  `"unfenced":[{${candidate},"token":"41"}]`,
  '"drains":[{"id":"host-9","untilUnixMs":1795000060000}]',
  '"history":[{"token":"41","id":"host-6","incarnation":"1a","fromUnixMs":1794999000000,' +
    '"toUnixMs":1794999900000,"why":"unclean"}]',
].join();

const lease = [
  '{"format":1,"election":"billing","token":"18446744073709551616","nonce":"n1"',
  '"leaseMs":15000,"ended":false',
  `"holding":{"candidate":{${candidate}},"electedAtUnixMs":1795000000000,"announced":true`,
  `"actors":[{"pid":7,"boot":"b"}],"revoked":false,${held},${request}}`,
  `${shared}}`,
].join();

const queue = [
  '{"incumbent":"queue","format":1,"election":"billing","token":"42","place":"n_1-0000000007"',
  '"nonce":"n1","beliefMs":4000,"ended":false',
  `"leadership":{"candidate":{${candidate}},"place":"n_1-0000000007"`,
  `"electedAtUnixMs":1795000000000,"leaseMs":10000,"revoked":false,${request},${held}}`,
  `${shared}}`,
].join();

describe.each([
  ['lease', lease, (text: string) => encodeLeaseRecord(decodeLeaseRecord(text, 'here'))],
  ['queue', queue, (text: string) => encodeQueueRecord(decodeQueueRecord(text, 'here'))],
])('a record of the %s in format 1', (mechanism, text, rewritten) => {
  const decoded = mechanism === 'lease' ? decodeLeaseRecord : decodeQueueRecord;

  test('is read, and written with the same bytes', () => {
    expect(rewritten(text)).toBe(text);
  });

  test('says that its leader is not ready, and says nothing of one that is', () => {
    const unready = text.replace('"revoked":false', '"revoked":false,"ready":false');
    expect(decoded(unready, 'here').holding?.ready).toBe(false);
    expect(decoded(rewritten(unready), 'here').holding?.ready).toBe(false);
    const ready = text.replace('"revoked":false', '"revoked":false,"ready":true');
    expect(rewritten(ready)).toBe(text);
    const damaged = text.replace('"revoked":false', '"revoked":false,"ready":"no"');
    expect(() => rewritten(damaged)).toThrow('unexpected ready');
  });

  test.each(['{"by":"b"}', '{"by":"b","why":"no route"}'])(
    'tells of a takeover that failed: %s',
    (failure) => {
      const failed = text.replace('"token":"41"}]', `"token":"41","failure":${failure}}]`);
      expect(decoded(failed, 'here').unfenced[0]?.failure).toEqual(JSON.parse(failure));
      expect(rewritten(failed)).toBe(failed);
      const damaged = failed.replace('"by":"b"', '"by":1');
      expect(() => rewritten(damaged)).toThrow('unexpected unfenced.failure.by');
    },
  );

  test('may have a field of a later release, which is passed over', () => {
    expect(rewritten(text.replace('"ended"', '"later":1,"ended"'))).toBe(text);
  });

  test('is damaged where the metadata of a candidate is no text', () => {
    const damaged = text.replace('"metadata":{"zone":"1"}', '"metadata":{"zone":1}');
    expect(() => rewritten(damaged)).toThrow(RecordDamagedError);
    expect(() => rewritten(damaged)).toThrow('metadata.zone');
  });

  test('may name no time that a timer cannot wait for', () => {
    const withReserveMs = (ms: number) => text.replace('"reserveMs":6000', `"reserveMs":${ms}`);
    const longest = withReserveMs(2 ** 31 - 1);
    expect(rewritten(longest)).toBe(longest);
    for (const ms of [2 ** 31, -1]) {
      expect(() => rewritten(withReserveMs(ms))).toThrow('unexpected reservation.reserveMs');
    }
  });

  test('is refused in a newer format', () => {
    const newer = text.replace('"format":1', '"format":3');
    expect(() => rewritten(newer)).toThrow(RecordTooNewError);
  });
});

describe('a record of the lease with shards', () => {
  const withShards = `${lease.replace('"format":1', '"format":2').slice(0, -1)},"shards":"CAEQBw=="}`;

  test('has a format of its own, which versions without shards refuse', () => {
    const record = decodeLeaseRecord(withShards, 'here');
    expect(record.shards).toBe('CAEQBw==');
    expect(encodeLeaseRecord(record)).toBe(withShards);
    expect(encodeLeaseRecord({ ...record, shards: undefined })).toBe(lease);
  });

  test.each([
    ['has none', withShards.replace('"shards"', '"others"')],
    ['has some that are no text', withShards.replace('"CAEQBw=="', '7')],
    ['has a format between two', withShards.replace('"format":2', '"format":1.5')],
  ])('is damaged where it %s', (_what, text) => {
    expect(() => decodeLeaseRecord(text, 'here')).toThrow(RecordDamagedError);
  });
});
