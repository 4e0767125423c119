import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { crc32c, crc32cBase64 } from '../src/backends/gcs/crc32c.ts';
import type { RaceEntry } from '../src/backends/gcs/race-entry.ts';
import {
  decodeEntry,
  encodeEntry,
  sameEntry,
  timestampOf,
  unixMsOf,
} from '../src/backends/gcs/race-entry.ts';
import { RecordDamagedError } from '../src/base/errors.ts';
import { decodeLeaseRecord } from '../src/record/lease-record.ts';

const location = 'gs://elections/billing';

function golden(file: string): string {
  return readFileSync(new URL(`golden/gcs/${file}`, import.meta.url), 'utf8');
}

/** Made by protoc: see `golden/gcs/make.sh`. */
function goldenBytes(name: string): Uint8Array {
  return new Uint8Array(Buffer.from(golden(`${name}.hex`).replace(/\s/g, ''), 'hex'));
}

const expiry = { seconds: 1_767_225_630n, nanos: 0 };
const theirs = { hostPorts: [], connectionParameters: new Uint8Array(), record: undefined };

const entries: Readonly<Record<string, RaceEntry>> = {
  'go-first': {
    ...theirs,
    electionNumber: 0n,
    leaderId: 'go-1',
    hostPorts: ['10.0.0.7:50051'],
    termExpiry: { ...expiry, nanos: 123_456_789 },
  },
  'go-renewed': {
    ...theirs,
    electionNumber: 300n,
    leaderId: 'go-zoë',
    hostPorts: ['10.0.0.7:50051', '[2001:db8::7]:50051'],
    termExpiry: expiry,
    connectionParameters: new TextEncoder().encode('{"loadBalancingConfig":[{"round_robin":{}}]}'),
  },
  'go-binary': {
    ...theirs,
    electionNumber: 2n ** 63n - 1n,
    leaderId: 'go-2',
    termExpiry: { seconds: -62_135_596_800n, nanos: 0 },
    connectionParameters: Uint8Array.of(0, 0xff, 0x80),
  },
  'go-older': {
    ...theirs,
    electionNumber: 7n,
    leaderId: 'go-3',
    hostPorts: ['10.0.0.7:50051'],
    termExpiry: { ...expiry, nanos: 1 },
  },
};

describe('the bytes of an object', () => {
  for (const [name, entry] of Object.entries(entries)) {
    test(`${name}: read and written as protoc does by the published schema`, () => {
      expect(decodeEntry(goldenBytes(name), location)).toEqual(entry);
      expect(encodeEntry(entry)).toEqual(goldenBytes(name));
    });
  }

  for (const name of ['ours-held', 'ours-vacant']) {
    test(`${name}: read and written as protoc does by our schema, the record within`, () => {
      const entry = decodeEntry(goldenBytes(name), location);
      expect(decodeLeaseRecord(entry.record ?? '', location)).toMatchObject({
        token: entry.electionNumber,
        leaseMs: 45_000,
      });
      expect(encodeEntry(entry)).toEqual(goldenBytes(name));
    });
  }

  test('of ours, programs with the published schema see all that it has, and skip the rest', () => {
    expect(golden('ours-held.by-published.txt')).toBe(
      'election_number: 12\nleader_id: "host-7"\nhost_port: "10.0.0.8:50051"\n' +
        'host_port: "10.0.0.9:50051"\nterm_expiry {\n  seconds: 1767225645\n  nanos: 250000000\n}\n' +
        'connection_parameters: "{}"\n',
    );
    // Before there were several addresses: the last one.
    const older = golden('ours-held.by-published-older.txt');
    expect(older.match(/host_port: .*/g)).toEqual(['host_port: "10.0.0.9:50051"']);
    expect(golden('ours-vacant.by-published.txt')).toContain('term_expiry {');
  });

  test('our schema has the field numbers of the published one', () => {
    const fields = (text: string) =>
      [...text.matchAll(/^ {2}[a-z].* = \d+;/gm)].map(([line]) => line);
    const ours = new URL('../src/backends/gcs/race-entry.proto', import.meta.url);
    expect(fields(readFileSync(ours, 'utf8')).slice(0, 5)).toEqual(
      fields(golden('published.proto')),
    );
  });

  test('any entry comes back as it was written', () => {
    fc.assert(
      fc.property(anyEntry, (entry) => {
        const decoded = decodeEntry(encodeEntry(entry), location);
        expect(decoded).toEqual(entry);
        expect(sameEntry(decoded, entry)).toBe(true);
      }),
    );
  });

  test('an entry that differs in anything is not the same', () => {
    const entry = entries['go-renewed'] as RaceEntry;
    const others: readonly Partial<RaceEntry>[] = [
      { electionNumber: 301n },
      { leaderId: 'x' },
      { hostPorts: [] },
      { hostPorts: ['10.0.0.7:50051', 'x'] },
      { termExpiry: { ...expiry, nanos: 1 } },
      { termExpiry: { ...expiry, seconds: 0n } },
      { connectionParameters: Uint8Array.of(1) },
      { record: '' },
    ];
    for (const other of others) expect(sameEntry(entry, { ...entry, ...other })).toBe(false);
    expect(sameEntry(entry, { ...entry })).toBe(true);
  });

  test('fields that are not known are skipped', () => {
    // Fields 77 to 81: a varint, eight bytes, four bytes, a text, a group with a varint in it.
    const unknown = 'e804 96 01 f104 0102030405060708 fd04 01020304 8205 02 6869 8b05 08 01 8c05';
    const bytes = Buffer.concat([
      Buffer.from(unknown.replaceAll(' ', ''), 'hex'),
      goldenBytes('go-renewed'),
    ]);
    expect(decodeEntry(bytes, location)).toEqual(entries['go-renewed']);
  });
});

describe('bytes that are no entry', () => {
  const refuses = (bytes: Uint8Array) => {
    expect(() => decodeEntry(bytes, location)).toThrow(RecordDamagedError);
    expect(() => decodeEntry(bytes, location)).toThrow(`${location} is not an election record (`);
  };

  test.each([
    ['nothing at all', ''],
    ['a term without an end', '1204676f2d31'],
    ['a number in place of a name', '1001 2200'],
    ['a text in place of a number', '0a0161 2200'],
    ['bytes that are no UTF-8', '1201ff 2200'],
    ['a time beyond the year 9999', '2207 0880b8c3bdb007'],
    ['negative nanoseconds', '220b 10ffffffffffffffffff01'],
    ['a number that Go cannot count', '0880808080808080808001 2200'],
    ['an end of a group that never began', '0c 2200'],
    ['field number 0', '0001 2200'],
  ])('%s', (_name, hex) => {
    refuses(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
  });

  test.each(['{"format":1}', 'hello', '<html>', 'PK\u0003\u0004'])('the text %j', (text) => {
    refuses(new TextEncoder().encode(text));
  });

  test('an entry that was cut off anywhere within a field', () => {
    for (const name of [...Object.keys(entries), 'ours-held', 'ours-vacant']) {
      const bytes = goldenBytes(name);
      for (let length = 0; length < bytes.length; length += 1) {
        const part = bytes.subarray(0, length);
        let entry: RaceEntry;
        try {
          entry = decodeEntry(part, location);
        } catch (error) {
          expect(error).toBeInstanceOf(RecordDamagedError);
          continue;
        }
        // The reader cannot tell where one field ends and the next begins. Checksums are for that.
        expect(encodeEntry(entry)).toEqual(part);
      }
    }
  });

  test('any bytes are read, or refused by the name of the object; never anything else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          decodeEntry(bytes, location);
        } catch (error) {
          expect(error).toBeInstanceOf(RecordDamagedError);
        }
      }),
    );
  });
});

describe('a time', () => {
  test.each([
    [0, 0n, 0],
    [1, 0n, 1_000_000],
    [-1, -1n, 999_000_000],
    [1_767_225_630_123, 1_767_225_630n, 123_000_000],
    [1_767_225_630_122.2, 1_767_225_630n, 123_000_000],
  ])('%d ms', (unixMs, seconds, nanos) => {
    expect(timestampOf(unixMs)).toEqual({ seconds, nanos });
    expect(unixMsOf({ seconds, nanos })).toBe(Math.ceil(unixMs));
  });

  test('is never told too early', () => {
    expect(unixMsOf({ seconds: 5n, nanos: 1 })).toBe(5_001);
  });
});

describe('CRC-32C', () => {
  // RFC 3720, appendix B.4, and the check value of the catalogues.
  test.each([
    ['00'.repeat(32), 0x8a9136aa],
    ['ff'.repeat(32), 0x62a8ab43],
    [Buffer.from(Array.from({ length: 32 }, (_, i) => i)).toString('hex'), 0x46dd794e],
    [Buffer.from(Array.from({ length: 32 }, (_, i) => 31 - i)).toString('hex'), 0x113fdb5c],
    [Buffer.from('123456789').toString('hex'), 0xe3069283],
    ['', 0],
  ])('of %s', (hex, crc) => {
    expect(crc32c(Buffer.from(hex, 'hex'))).toBe(crc);
  });

  test('is told as Cloud Storage tells it', () => {
    expect(crc32cBase64(Buffer.from('123456789'))).toBe('4waSgw==');
  });
});

const anyText = fc.string({ unit: 'binary', maxLength: 60 });

const anyEntry: fc.Arbitrary<RaceEntry> = fc.record({
  electionNumber: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  leaderId: anyText,
  hostPorts: fc.array(anyText, { maxLength: 4 }),
  termExpiry: fc.record({
    seconds: fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
    nanos: fc.integer({ min: 0, max: 999_999_999 }),
  }),
  connectionParameters: fc.uint8Array({ maxLength: 300 }),
  record: fc.option(fc.string({ unit: 'binary', maxLength: 400 }), { nil: undefined }),
});
