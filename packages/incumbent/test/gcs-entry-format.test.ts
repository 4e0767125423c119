import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EntryFormat } from '../src/backends/gcs/entry-format.ts';
import {
  entryOfRecord,
  isForeign,
  ourRecord,
  recordOfEntry,
} from '../src/backends/gcs/entry-format.ts';
import type { RaceEntry } from '../src/backends/gcs/race-entry.ts';
import { decodeEntry, encodeEntry, timestampOf, unixMsOf } from '../src/backends/gcs/race-entry.ts';
import { parametersBase64Key, parametersKey } from '../src/base/connection-parameters.ts';
import { RecordDamagedError, RecordTooNewError, StoreUnsuitableError } from '../src/base/errors.ts';
import type { LeaseHolding, LeaseRecord } from '../src/record/lease-record.ts';
import { encodeLeaseRecord } from '../src/record/lease-record.ts';

const format: EntryFormat = {
  election: 'billing',
  location: 'gs://elections/billing',
  maxClockSkewMs: 5_000,
  clockDrift: 0,
};
const nowMs = Date.UTC(2026, 0, 1);

function holding(fields: Partial<LeaseHolding> = {}): LeaseHolding {
  return {
    candidate: { id: 'host-7', incarnation: 'i-1', addresses: ['10.0.0.7:1'], metadata: {} },
    electedAtUnixMs: nowMs,
    announced: true,
    actors: null,
    revoked: false,
    request: undefined,
    ...fields,
  };
}

function record(fields: Partial<LeaseRecord> = {}): LeaseRecord {
  return {
    election: 'billing',
    token: 12n,
    nonce: 'n-1',
    leaseMs: 45_000,
    ended: false,
    holding: holding(),
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
    ...fields,
  };
}

function goEntry(fields: Partial<RaceEntry> = {}): RaceEntry {
  return {
    electionNumber: 41n,
    leaderId: 'go-1',
    hostPorts: ['10.0.0.9:50051'],
    termExpiry: timestampOf(nowMs + 30_000),
    connectionParameters: new Uint8Array(),
    record: undefined,
    ...fields,
  };
}

const read = (entry: RaceEntry, writtenUnixMs: number | undefined = nowMs, version = '7.1') =>
  recordOfEntry(entry, { version, writtenUnixMs }, format);

/** The entry that was written, and the record that it is read as. */
function write(next: LeaseRecord, base?: LeaseRecord, wallMs = nowMs) {
  const sent = (ms: number) => ({ wallMs: ms, storeMs: ms, believedUntilMs: ms });
  const replaced =
    base === undefined
      ? undefined
      : { entry: entryOfRecord(undefined, base, sent(nowMs)), record: base };
  const bytes = encodeEntry(entryOfRecord(replaced, next, sent(wallMs)));
  return decodeEntry(bytes, format.location);
}

describe('our entries as a Go program sees them', () => {
  test('who leads and where, by which token, and until our lease is over', () => {
    const candidate = {
      id: 'zoë',
      incarnation: 'i-1',
      addresses: ['10.0.0.7:50051', '[2001:db8::7]:50051'],
      metadata: { [parametersKey]: '{"x":1}', zone: 'b' },
    };
    const entry = write(record({ holding: holding({ candidate }) }));
    expect(entry).toMatchObject({
      electionNumber: 12n,
      leaderId: 'zoë',
      hostPorts: ['10.0.0.7:50051', '[2001:db8::7]:50051'],
      connectionParameters: new TextEncoder().encode('{"x":1}'),
    });
    expect(unixMsOf(entry.termExpiry)).toBe(nowMs + 45_000);
  });

  test('the same number for all confirmations of a term', () => {
    const confirmed = write(record({ nonce: 'n-2' }), record(), nowMs + 9_000);
    expect(confirmed.electionNumber).toBe(12n);
    expect(unixMsOf(confirmed.termExpiry)).toBe(nowMs + 54_000);
  });

  test('a term that is over at once when the seat was given back: neither absent nor zero', () => {
    const vacated = write(record({ nonce: 'n-2', holding: undefined }), record(), nowMs + 9_000);
    expect(vacated).toMatchObject({ electionNumber: 12n, leaderId: '', hostPorts: [] });
    expect(unixMsOf(vacated.termExpiry)).toBe(nowMs + 9_000);
  });

  test.each([undefined, 'host-8'])('a seat that is reserved (for %s) as led until then', (id) => {
    const reservation = { for: id, reserveMs: 60_000, untilUnixMs: nowMs + 60_000 };
    const vacant = { nonce: 'n-2', holding: undefined };
    const reserved = write(record({ ...vacant, reservation }), record());
    expect(unixMsOf(reserved.termExpiry)).toBe(nowMs + 60_000);
    const past = { ...reservation, untilUnixMs: nowMs - 60_000 };
    const late = write(record({ ...vacant, reservation: past }), record());
    expect(unixMsOf(late.termExpiry)).toBe(nowMs);
  });

  test('a seat that is held beyond its lease as led until then', () => {
    const held = { ms: 600_000, untilUnixMs: nowMs + 600_000 };
    const entry = write(record({ nonce: 'n-2', holding: holding({ held }) }), record());
    expect(unixMsOf(entry.termExpiry)).toBe(nowMs + 600_000);
    const soon = { ms: 1_000, untilUnixMs: nowMs + 1_000 };
    const short = write(record({ nonce: 'n-2', holding: holding({ held: soon }) }), record());
    expect(unixMsOf(short.termExpiry)).toBe(nowMs + 45_000);
  });

  test('an election that was ended as led for ever, until it is opened again', () => {
    for (const holder of [holding(), undefined]) {
      const ended = record({ ended: true, holding: holder });
      const entry = write(ended, record({ holding: holder }));
      expect(unixMsOf(entry.termExpiry)).toBe(Date.UTC(2200, 0));
      const reopened = write({ ...ended, ended: false }, ended, nowMs + 9_000);
      // The leader at the time of the end may still believe that it leads.
      const wait = holder === undefined ? 0 : 45_000;
      expect(unixMsOf(reopened.termExpiry)).toBe(nowMs + 9_000 + wait);
    }
  });

  test('an operator’s write prolongs no term, and shortens none', () => {
    const drains = [{ id: 'host-9', untilUnixMs: nowMs + 3_600_000 }];
    const later = nowMs + 9_000;
    const request = { kind: 'vacate', nonce: 'r' } as const;
    const changes: readonly Partial<LeaseRecord>[] = [
      { drains },
      { holding: holding({ request }) },
      { holding: holding({ request, revoked: true }) },
    ];
    for (const change of changes) {
      const entry = write(record(change), record(), later);
      expect(unixMsOf(entry.termExpiry)).toBe(nowMs + 45_000);
    }
    const reservation = { for: undefined, reserveMs: 60_000, untilUnixMs: nowMs + 60_000 };
    const reserved = record({ holding: undefined, reservation });
    const beside = write({ ...reserved, drains }, reserved, later);
    expect(unixMsOf(beside.termExpiry)).toBe(nowMs + 60_000);
    const lifted = write({ ...reserved, reservation: undefined }, reserved, later);
    expect(unixMsOf(lifted.termExpiry)).toBe(later);
  });

  test('the first entry, when an operator writes it, as one whose term is over', () => {
    const entry = write(record({ token: 0n, holding: undefined }));
    expect(entry.electionNumber).toBe(0n);
    expect(unixMsOf(entry.termExpiry)).toBe(nowMs);
  });

  test('tokens that Go could not count as the largest that it can', () => {
    const entry = write(record({ token: 2n ** 70n }));
    expect(entry.electionNumber).toBe(2n ** 63n - 1n);
    expect(read(entry).token).toBe(2n ** 70n);
  });

  test('connection parameters that are no text, by base64', () => {
    const metadata = { [parametersBase64Key]: 'AP+A' };
    const { candidate } = holding();
    const entry = write(record({ holding: holding({ candidate: { ...candidate, metadata } }) }));
    expect(entry.connectionParameters).toEqual(Uint8Array.of(0, 0xff, 0x80));
    // A leader may publish anything, and must not lose its seat by it.
    for (const [published, told] of [
      [{ [parametersBase64Key]: 'AP+' }, ''],
      [{ [parametersBase64Key]: 'A P' }, ''],
      [{ ...metadata, [parametersKey]: '{}' }, '{}'],
    ] as const) {
      const holder = holding({ candidate: { ...candidate, metadata: published } });
      const { connectionParameters } = write(record({ holding: holder }));
      expect(new TextDecoder().decode(connectionParameters)).toBe(told);
    }
  });

  test('a term that is not over before our belief is, by any clock', () => {
    const sending = { wallMs: nowMs, storeMs: nowMs, believedUntilMs: nowMs + 60_000 };
    const entry = entryOfRecord(undefined, record(), sending);
    expect(unixMsOf(entry.termExpiry)).toBe(nowMs + 60_000);
    const vacant = entryOfRecord(undefined, record({ holding: undefined }), sending);
    expect(unixMsOf(vacant.termExpiry)).toBe(nowMs);
  });

  test('times of the store, although the clock of this machine is ten minutes ahead', () => {
    const aheadMs = nowMs + 600_000;
    const sending = { wallMs: aheadMs, storeMs: nowMs, believedUntilMs: nowMs + 5_000 };
    const expiryOf = (fields: Partial<LeaseRecord>) =>
      unixMsOf(entryOfRecord(undefined, record(fields), sending).termExpiry) - nowMs;
    expect(expiryOf({})).toBe(record().leaseMs);
    expect(expiryOf({ holding: undefined })).toBe(0);
    const reservation = { for: 'b', reserveMs: 7_000, untilUnixMs: aheadMs + 7_000 };
    expect(expiryOf({ holding: undefined, reservation })).toBe(7_000);
    const held = { ms: 90_000, untilUnixMs: aheadMs + 90_000 };
    expect(expiryOf({ holding: holding({ held }) })).toBe(90_000);
  });

  test('a seat that an operator vacates by force beside a Go program as vacant', () => {
    const far = goEntry({ termExpiry: timestampOf(Date.UTC(2090, 0)) });
    const foreign = { entry: far, record: read(far) };
    const sending = { wallMs: nowMs, storeMs: nowMs, believedUntilMs: nowMs };
    const entry = entryOfRecord(foreign, { ...foreign.record, holding: undefined }, sending);
    expect(unixMsOf(entry.termExpiry)).toBe(nowMs);
    expect(entry.electionNumber).toBe(41n);
  });
});

describe('our entries as we see them', () => {
  test('any record, as it was written', () => {
    fc.assert(
      fc.property(anyRecord, fc.integer({ min: 0, max: 4e12 }), (written, wallMs) => {
        const seen = read(write(written, undefined, wallMs), undefined);
        // As JSON has no undefined.
        expect(JSON.parse(encodeLeaseRecord(seen))).toEqual(JSON.parse(encodeLeaseRecord(written)));
      }),
    );
  });

  test('an entry of ours that another program wrote again, keeping unknown fields, is that program’s', () => {
    const ours = write(record());
    for (const theirs of [{ electionNumber: 13n }, { leaderId: 'go-1' }]) {
      const entry = { ...ours, ...theirs };
      expect(ourRecord(entry, format)).toBeUndefined();
      expect(read(entry)).toMatchObject({
        token: entry.electionNumber,
        holding: { candidate: { id: entry.leaderId }, tokenless: true },
      });
    }
  });

  test('a field of ours that cannot be read is refused, and one of a newer version', () => {
    const entry = write(record());
    expect(() => read({ ...entry, record: '{' })).toThrow(RecordDamagedError);
    expect(() => read({ ...entry, record: '{}' })).toThrow(RecordDamagedError);
    expect(() => read({ ...entry, record: '{"format":99}' })).toThrow(RecordTooNewError);
  });
});

describe('the entries of a Go program as we see them', () => {
  test('its name, addresses and number; and that it confirms with each write', () => {
    const seen = read(goEntry());
    expect(seen).toMatchObject({
      token: 41n,
      nonce: 'foreign:7.1',
      ended: false,
      reservation: undefined,
      holding: {
        candidate: {
          id: 'go-1',
          incarnation: 'foreign:go-1',
          addresses: ['10.0.0.9:50051'],
          metadata: {},
        },
        electedAtUnixMs: nowMs,
        announced: true,
        actors: null,
        revoked: false,
        tokenless: true,
      },
    });
    expect(isForeign(seen.holding?.candidate.incarnation ?? '')).toBe(true);
    const renewed = read(goEntry({ electionNumber: 42n }), nowMs + 10_000, '8.1');
    expect(renewed.nonce).not.toBe(seen.nonce);
    expect(renewed.holding?.candidate).toEqual(seen.holding?.candidate);
  });

  test('the first election of all, which it counts as 0', () => {
    expect(read(goEntry({ electionNumber: 0n })).token).toBe(0n);
  });

  test('connection parameters, as text or else as base64', () => {
    const { candidate } = read(
      goEntry({ connectionParameters: new TextEncoder().encode('{"methodConfig":[]}') }),
    ).holding as LeaseHolding;
    expect(candidate.metadata).toEqual({ [parametersKey]: '{"methodConfig":[]}' });
    const binary = read(goEntry({ connectionParameters: Uint8Array.of(0, 0xff) })).holding;
    expect(binary?.candidate.metadata).toEqual({ [parametersBase64Key]: 'AP8=' });
    // And back again.
    for (const metadata of [candidate.metadata, binary?.candidate.metadata ?? {}]) {
      const holder = holding({ candidate: { ...holding().candidate, metadata } });
      const entry = write(record({ holding: holder }));
      expect(read({ ...entry, record: undefined }).holding?.candidate.metadata).toEqual(metadata);
    }
  });

  // By the store's clock it was written at `nowMs`.
  test.each([
    ['30 s away', 30_000, 35_000],
    ['just now', 0, 5_000],
    ['past when it was written, as of a clock that is slow', -60_000, 5_000],
    ['far away, as of a clock that is fast', 90_000, 95_000],
    ['in the year 9999', Date.UTC(9999, 11, 31) - nowMs, Date.UTC(9999, 11, 31) - nowMs + 5_000],
    ['in the year 1, as Go has no time', -62_135_596_800_000 - nowMs, 5_000],
  ])('a term_expiry %s: its lease runs until then and for the skew', (_name, awayMs, leaseMs) => {
    expect(read(goEntry({ termExpiry: timestampOf(nowMs + awayMs) })).leaseMs).toBe(leaseMs);
  });

  test('a fraction of a millisecond is not taken off', () => {
    const termExpiry = { seconds: BigInt(nowMs / 1_000) + 1n, nanos: 1 };
    expect(read(goEntry({ termExpiry })).leaseMs).toBe(1_001 + 5_000);
  });

  test('by a clock of ours that may be fast its lease is longer', () => {
    const drifting = { ...format, clockDrift: 0.05 };
    const stored = { version: '7.1', writtenUnixMs: nowMs };
    expect(recordOfEntry(goEntry(), stored, drifting).leaseMs).toBe(36_750);
  });

  test('it is over for us when no clock within the skew can say that it leads', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -5_000, max: 5_000 }),
        fc.integer({ min: 1_000, max: 3_600_000 }),
        fc.integer({ min: 0, max: 999 }),
        fc.double({ min: 0, max: 0.2, noNaN: true }),
        fc.double({ min: -1, max: 1, noNaN: true }),
        (goAheadMs, termMs, fractionMs, clockDrift, rate) => {
          // It writes at `writtenMs` by the store's clock, which tells whole seconds.
          const writtenMs = nowMs + fractionMs;
          const expiryMs = writtenMs + goAheadMs + termMs;
          const { leaseMs } = recordOfEntry(
            goEntry({ termExpiry: timestampOf(expiryMs) }),
            { version: '7.1', writtenUnixMs: nowMs },
            { ...format, clockDrift },
          );
          const believesUntilMs = expiryMs - goAheadMs;
          // Counted from the write at the earliest, by a clock whose rate is off.
          const takenMs = writtenMs + leaseMs / (1 + rate * clockDrift);
          expect(takenMs).toBeGreaterThanOrEqual(believesUntilMs - 1e-3);
        },
      ),
    );
  });

  test('nothing without knowing when it was written', () => {
    const unknown = { version: '7.1', writtenUnixMs: undefined };
    expect(() => recordOfEntry(goEntry(), unknown, format)).toThrow(StoreUnsuitableError);
  });

  test('a candidate of ours that has won after it: its number and one, a field of ours', () => {
    const foreign = { entry: goEntry(), record: read(goEntry()) };
    const sent = { wallMs: nowMs, storeMs: nowMs, believedUntilMs: nowMs };
    const won = entryOfRecord(foreign, record({ token: 42n }), sent);
    expect(won).toMatchObject({ electionNumber: 42n, leaderId: 'host-7' });
    expect(ourRecord(won, format)?.token).toBe(42n);
  });
});

const anyText = fc.string({ unit: 'grapheme', maxLength: 20 });
const anyTime = fc.integer({ min: 0, max: 4e12 });
const anyCandidate = fc.record({
  id: anyText,
  incarnation: anyText,
  addresses: fc.array(anyText, { maxLength: 3 }),
  metadata: fc.dictionary(anyText, anyText, { maxKeys: 3, noNullPrototype: true }),
});
const anyRecord: fc.Arbitrary<LeaseRecord> = fc.record({
  election: anyText,
  token: fc.bigInt({ min: 0n, max: 2n ** 100n }),
  nonce: anyText,
  leaseMs: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  ended: fc.boolean(),
  holding: fc.option(
    fc.record({
      candidate: anyCandidate,
      electedAtUnixMs: anyTime,
      announced: fc.boolean(),
      actors: fc.constantFrom(null, [], [{ pid: 7, boot: 'x' }]),
      revoked: fc.boolean(),
      request: fc.constantFrom(
        undefined,
        { kind: 'vacate', nonce: 'r' } as const,
        { kind: 'transfer', to: 'b', nonce: 'r' } as const,
      ),
      held: fc.option(fc.record({ ms: fc.integer({ min: 0, max: 1e9 }), untilUnixMs: anyTime }), {
        nil: undefined,
      }),
    }),
    { nil: undefined },
  ),
  reservation: fc.option(
    fc.record({
      for: fc.option(anyText, { nil: undefined }),
      reserveMs: fc.integer({ min: 0, max: 1e9 }),
      untilUnixMs: anyTime,
    }),
    { nil: undefined },
  ),
  unfenced: fc.array(
    anyCandidate.map((candidate) => ({ ...candidate, token: 3n })),
    { maxLength: 2 },
  ),
  drains: fc.array(fc.record({ id: anyText, untilUnixMs: anyTime }), { maxLength: 2 }),
  history: fc.array(
    fc.record({
      token: fc.bigInt({ min: 0n, max: 2n ** 64n }),
      id: anyText,
      incarnation: anyText,
      fromUnixMs: anyTime,
      toUnixMs: anyTime,
      why: fc.constantFrom('unclean', 'resigned'),
    }),
    { maxLength: 2 },
  ),
});
