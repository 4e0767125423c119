import { RecordDamagedError, RecordTooNewError } from '../base/errors.ts';
import type { Actor, ElectionRecord, Holding } from './record.ts';
import {
  FieldReader,
  readCandidate,
  readDrain,
  readHeld,
  readRequest,
  readReservation,
  readTermSummary,
  readUnclean,
} from './record-fields.ts';

/** The format this version writes, and the newest it reads. */
export const recordFormat = 1;

/** A seat that is held: by whom, and what they owe. */
export interface LeaseHolding extends Holding {
  /** False while the holder still fences its predecessor. */
  readonly announced: boolean;
  readonly actors: readonly Actor[] | null;
  /**
   * The holder is a foreign program that counts its confirmations and not its terms: observers are
   * told of no token. Only in what a store has read, never written.
   */
  readonly tokenless?: boolean;
}

/** Every write replaces the whole of it. Releasing vacates, and keeps the token. */
export interface LeaseRecord extends ElectionRecord<LeaseHolding> {
  /** D: how long this version must stay unchanged before the holder counts as gone. */
  readonly leaseMs: number;
}

/** The record as JSON; tokens as decimal strings. */
export function encodeLeaseRecord(record: LeaseRecord): string {
  return JSON.stringify({ format: recordFormat, ...record }, (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
}

/**
 * @param location the file, key or object, for the error
 * @throws RecordDamagedError, RecordTooNewError
 */
export function decodeLeaseRecord(text: string, location: string): LeaseRecord {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new RecordDamagedError(location, 'no JSON', { cause: error });
  }
  const reader = new FieldReader(location);
  const fields = reader.object(parsed, 'the record');
  const format = reader.number(fields['format'], 'format');
  if (format > recordFormat) throw new RecordTooNewError(location, format, recordFormat);
  if (format !== recordFormat) reader.fail(`format ${format}`);
  return {
    election: reader.string(fields['election'], 'election'),
    token: reader.token(fields['token'], 'token'),
    nonce: reader.string(fields['nonce'], 'nonce'),
    leaseMs: reader.duration(fields['leaseMs'], 'leaseMs'),
    ended: reader.boolean(fields['ended'], 'ended'),
    holding: reader.optional(fields['holding'], (value) => readHolding(reader, value)),
    reservation: reader.optional(fields['reservation'], (value) => readReservation(reader, value)),
    unfenced: reader.list(fields['unfenced'], 'unfenced', (value) => readUnclean(reader, value)),
    drains: reader.list(fields['drains'], 'drains', (value) => readDrain(reader, value)),
    history: reader.list(fields['history'], 'history', (value) => readTermSummary(reader, value)),
  };
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

/** The record of an election that nobody has led. */
export function emptyLeaseRecord(election: string, nonce: string, leaseMs: number): LeaseRecord {
  return {
    election,
    token: 0n,
    nonce,
    leaseMs,
    ended: false,
    holding: undefined,
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
  };
}
