/**
 * The object's bytes: the protobuf message of vimeo/leaderelection (`race-entry.proto`), with a
 * field of our own behind theirs. Go programs skip that field when they read, and leave it out
 * when they write.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { RecordDamagedError } from '../../base/errors.ts';

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

const field = {
  electionNumber: 1,
  leaderId: 2,
  hostPort: 3,
  termExpiry: 4,
  connectionParameters: 5,
  record: 1000,
} as const;

/** Go counts in an int64. */
export const largestElectionNumber: bigint = 2n ** 63n - 1n;
/** The range of a Timestamp: from the year 1 to the end of 9999. */
const firstSecond = -62_135_596_800n;
const lastSecond = 253_402_300_799n;

/** Writes fields in their order and leaves defaults out, as protoc does. */
export function encodeEntry(entry: RaceEntry): Uint8Array {
  const writer = new BinaryWriter();
  if (entry.electionNumber !== 0n) {
    writer.tag(field.electionNumber, WireType.Varint).uint64(entry.electionNumber);
  }
  if (entry.leaderId !== '') writeText(writer, field.leaderId, entry.leaderId);
  for (const hostPort of entry.hostPorts) writeText(writer, field.hostPort, hostPort);
  const { seconds, nanos } = entry.termExpiry;
  writer.tag(field.termExpiry, WireType.LengthDelimited).fork();
  if (seconds !== 0n) writer.tag(1, WireType.Varint).int64(seconds);
  if (nanos !== 0) writer.tag(2, WireType.Varint).int32(nanos);
  writer.join();
  if (entry.connectionParameters.length > 0) {
    writer
      .tag(field.connectionParameters, WireType.LengthDelimited)
      .bytes(entry.connectionParameters);
  }
  if (entry.record !== undefined) writeText(writer, field.record, entry.record);
  return writer.finish();
}

/**
 * @throws RecordDamagedError for bytes that are no such message, and for a message without a term
 */
export function decodeEntry(bytes: Uint8Array, location: string): RaceEntry {
  let electionNumber = 0n;
  let leaderId = '';
  const hostPorts: string[] = [];
  let termExpiry: Timestamp | undefined;
  let connectionParameters: Uint8Array = new Uint8Array();
  let record: string | undefined;
  try {
    const reader = new BinaryReader(bytes);
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      switch (number) {
        case field.electionNumber:
          requireType(type, WireType.Varint);
          electionNumber = BigInt(reader.uint64());
          break;
        case field.leaderId:
          leaderId = readText(reader, type);
          break;
        // One address in older versions of the schema, a list of them in newer ones.
        case field.hostPort:
          hostPorts.push(readText(reader, type));
          break;
        case field.termExpiry:
          requireType(type, WireType.LengthDelimited);
          termExpiry = readTimestamp(reader.bytes());
          break;
        case field.connectionParameters:
          requireType(type, WireType.LengthDelimited);
          connectionParameters = new Uint8Array(reader.bytes());
          break;
        case field.record:
          record = readText(reader, type);
          break;
        default:
          reader.skip(type, number);
      }
      if (reader.pos > reader.len) throw new RangeError('it ends within a field');
    }
  } catch (error) {
    const why = `no message of vimeo/leaderelection: ${(error as Error).message}`;
    throw new RecordDamagedError(location, why, { cause: error });
  }
  if (termExpiry === undefined) throw new RecordDamagedError(location, 'it has no term_expiry');
  if (electionNumber > largestElectionNumber) {
    throw new RecordDamagedError(location, `election_number ${electionNumber} is no int64`);
  }
  return { electionNumber, leaderId, hostPorts, termExpiry, connectionParameters, record };
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

function readTimestamp(bytes: Uint8Array): Timestamp {
  const reader = new BinaryReader(bytes);
  let seconds = 0n;
  let nanos = 0;
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number === 1) {
      requireType(type, WireType.Varint);
      seconds = BigInt(reader.int64());
    } else if (number === 2) {
      requireType(type, WireType.Varint);
      nanos = reader.int32();
    } else {
      reader.skip(type, number);
    }
    if (reader.pos > reader.len) throw new RangeError('it ends within a field');
  }
  if (seconds < firstSecond || seconds > lastSecond || nanos < 0 || nanos > 999_999_999) {
    throw new RangeError(`a term_expiry of ${seconds} s and ${nanos} ns is no time`);
  }
  return { seconds, nanos };
}

function writeText(writer: BinaryWriter, number: number, text: string): void {
  writer.tag(number, WireType.LengthDelimited).bytes(new TextEncoder().encode(text));
}

function readText(reader: BinaryReader, type: WireType): string {
  requireType(type, WireType.LengthDelimited);
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(reader.bytes());
}

function requireType(found: WireType, wanted: WireType): void {
  if (found !== wanted) throw new RangeError(`a field of wire type ${found} instead of ${wanted}`);
}
