import { RecordDamagedError } from '../base/errors.ts';
import type { Actor, ElectionRecord, Holding } from './record.ts';
import type { FieldReader } from './record-fields.ts';
import {
  checkFormat,
  nobodyYet,
  parseRecord,
  readCandidate,
  readHeld,
  readReady,
  readRequest,
  readSharedFields,
} from './record-fields.ts';

/** The format of the record of an election. */
const electionFormat = 1;
/**
 * The format of a record with shards, and the newest that this version reads. Versions that know no
 * shards would drop them when they write, so they must refuse the record.
 */
const shardsFormat = 2;

/** A seat that is held. */
export interface LeaseHolding extends Holding {
  /** False while the holder still fences its predecessor. */
  readonly announced: boolean;
  readonly actors: readonly Actor[] | null;
  /**
   * The holder is a foreign program that counts its confirmations and not its terms. Observers then
   * see no token. A store sets this when it reads, and never writes it.
   */
  readonly tokenless?: boolean;
}

/** Every write replaces all of it. A release vacates the seat, and keeps the token. */
export interface LeaseRecord extends ElectionRecord<LeaseHolding> {
  /** D: how long this version must stay unchanged before the holder counts as gone. */
  readonly leaseMs: number;
  /** The part of a process in shards, packed as base64. No election has it. */
  readonly shards?: string | undefined;
}

/** The record as JSON, with tokens as decimal strings. */
export function encodeLeaseRecord(record: LeaseRecord): string {
  const format = record.shards === undefined ? electionFormat : shardsFormat;
  return JSON.stringify({ format, ...record }, (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
}

/** @param text a record, or its beginning */
export function isOfShards(text: string): boolean {
  return text.startsWith(`{"format":${shardsFormat},`);
}

/**
 * @param location the file, key or object, for the error
 * @throws RecordDamagedError when the text is no record of ours
 * @throws RecordTooNewError when a newer version wrote it
 */
export function decodeLeaseRecord(text: string, location: string): LeaseRecord {
  const parsed = parseRecord(text, location);
  const { reader, fields } = parsed;
  const format = checkFormat(parsed, shardsFormat, electionFormat);
  return {
    election: reader.string(fields['election'], 'election'),
    token: reader.token(fields['token'], 'token'),
    nonce: reader.string(fields['nonce'], 'nonce'),
    leaseMs: reader.duration(fields['leaseMs'], 'leaseMs'),
    ended: reader.boolean(fields['ended'], 'ended'),
    holding: reader.optional(fields['holding'], (value) => readHolding(reader, value)),
    ...readSharedFields(parsed),
    ...(format === shardsFormat && { shards: reader.string(fields['shards'], 'shards') }),
  };
}

/**
 * As `decodeLeaseRecord`, for the record of this election and no other.
 * @throws RecordDamagedError, RecordTooNewError
 */
export function decodeRecordOf(election: string, text: string, location: string): LeaseRecord {
  const record = decodeLeaseRecord(text, location);
  requireOf({ election, location }, record);
  return record;
}

/** @throws RecordDamagedError for the record of another election */
export function requireOf(
  { election, location }: { readonly election: string; readonly location: string },
  record: LeaseRecord,
): void {
  if (record.election === election) return;
  throw new RecordDamagedError(
    location,
    `it belongs to the election ${JSON.stringify(record.election)}`,
  );
}

function readHolding(reader: FieldReader, value: unknown): LeaseHolding {
  const holding = reader.object(value, 'holding');
  return {
    candidate: readCandidate(reader, holding['candidate'], 'holding.candidate'),
    electedAtUnixMs: reader.number(holding['electedAtUnixMs'], 'holding.electedAtUnixMs'),
    announced: reader.boolean(holding['announced'], 'holding.announced'),
    actors:
      holding['actors'] === null
        ? null
        : reader.list(holding['actors'], 'holding.actors', (actor) => readActor(reader, actor)),
    revoked: reader.boolean(holding['revoked'], 'holding.revoked'),
    held: reader.optional(holding['held'], (value) => readHeld(reader, value)),
    ready: readReady(reader, holding['ready']),
    request: reader.optional(holding['request'], (entry) => readRequest(reader, entry)),
  };
}

function readActor(reader: FieldReader, value: unknown): Actor {
  const actor = reader.object(value, 'actor');
  for (const [key, entry] of Object.entries(actor)) {
    if (typeof entry !== 'string' && typeof entry !== 'number') reader.fail(`actor.${key}`);
  }
  return actor as Actor;
}

/** The record of an election that has had no leader yet. */
export function emptyLeaseRecord(election: string, nonce: string, leaseMs: number): LeaseRecord {
  return { election, token: 0n, nonce, leaseMs, ...nobodyYet };
}
