/**
 * The object's bytes: the protobuf message of vimeo/leaderelection (`race-entry.proto`), with a
 * field of our own behind theirs. Go programs skip that field when they read, and leave it out
 * when they write.
 */
import { RecordDamagedError } from '../../base/errors.ts';
import {
  bytes,
  embedded,
  field,
  int32,
  int64,
  message,
  optional,
  repeated,
  string,
  uint64,
} from '../protobuf.ts';

export interface RaceEntry {
  /** Go programs add one to it at each write: wins and confirmations. */
  readonly electionNumber: bigint;
  readonly leaderId: string;
  readonly hostPorts: readonly string[];
  readonly termExpiry: Timestamp;
  readonly connectionParameters: Uint8Array;
  /** Our field, as JSON. Undefined: a Go program has written this. */
  readonly record: string | undefined;
}

/** `google.protobuf.Timestamp`. */
export interface Timestamp {
  readonly seconds: bigint;
  readonly nanos: number;
}

type WireEntry = Omit<RaceEntry, 'termExpiry'> & { readonly termExpiry: Timestamp | undefined };

const timestamp = message<Timestamp>({ seconds: field(1, int64), nanos: field(2, int32) });
const raceEntry = message<WireEntry>({
  electionNumber: field(1, uint64),
  leaderId: field(2, string),
  // One address in older versions of the schema, a list of them in newer ones.
  hostPorts: repeated(3, string),
  termExpiry: optional(4, embedded(timestamp)),
  connectionParameters: field(5, bytes),
  record: optional(1000, string),
});

/** Go counts in an int64. */
export const largestElectionNumber: bigint = 2n ** 63n - 1n;
/** The range of a Timestamp: from the year 1 to the end of 9999. */
const firstSecond = -62_135_596_800n;
const lastSecond = 253_402_300_799n;

/** Writes fields in their order and leaves defaults out, as protoc does. */
export function encodeEntry(entry: RaceEntry): Uint8Array {
  return raceEntry.encode(entry);
}

/** @throws RecordDamagedError for what is no such message, or one without a term */
export function decodeEntry(source: Uint8Array, location: string): RaceEntry {
  let entry: WireEntry;
  try {
    entry = raceEntry.decode(source);
    if (entry.termExpiry !== undefined) checkTime(entry.termExpiry);
  } catch (error) {
    const why = `no message of vimeo/leaderelection: ${(error as Error).message}`;
    throw new RecordDamagedError(location, why, { cause: error });
  }
  const { termExpiry, electionNumber } = entry;
  if (termExpiry === undefined) throw new RecordDamagedError(location, 'it has no term_expiry');
  if (electionNumber > largestElectionNumber) {
    throw new RecordDamagedError(location, `election_number ${electionNumber} is no int64`);
  }
  return { ...entry, termExpiry };
}

export function sameEntry(a: RaceEntry, b: RaceEntry): boolean {
  return (
    a.electionNumber === b.electionNumber &&
    a.leaderId === b.leaderId &&
    a.hostPorts.length === b.hostPorts.length &&
    a.hostPorts.every((hostPort, index) => hostPort === b.hostPorts[index]) &&
    a.termExpiry.seconds === b.termExpiry.seconds &&
    a.termExpiry.nanos === b.termExpiry.nanos &&
    Buffer.compare(a.connectionParameters, b.connectionParameters) === 0 &&
    a.record === b.record
  );
}

export function timestampOf(unixMs: number): Timestamp {
  const wholeMs = Math.ceil(unixMs);
  const seconds = Math.floor(wholeMs / 1_000);
  return { seconds: BigInt(seconds), nanos: (wholeMs - seconds * 1_000) * 1_000_000 };
}

/** Rounded up: a term is never taken for shorter than it is. */
export function unixMsOf({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1_000 + Math.ceil(nanos / 1_000_000);
}

function checkTime({ seconds, nanos }: Timestamp): void {
  if (seconds < firstSecond || seconds > lastSecond || nanos < 0 || nanos > 999_999_999) {
    throw new RangeError(`a term_expiry of ${seconds} s and ${nanos} ns is no time`);
  }
}
