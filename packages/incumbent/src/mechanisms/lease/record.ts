import type { CandidateInfo } from '../../base/candidate.ts';
import { RecordDamagedError, RecordTooNewError } from '../../base/errors.ts';
import type { Actor, Held } from '../../core/contest.ts';
import type { Drain, LeaderRequest, TermSummary, UncleanLeader } from '../../record/record.ts';
import type { Reservation } from '../../record/record-fields.ts';
import {
  FieldReader,
  readCandidate,
  readDrain,
  readRequest,
  readReservation,
  readTermSummary,
  readUnclean,
} from '../../record/record-fields.ts';

/** The format this version writes, and the newest it reads. */
export const recordFormat = 1;

/** A seat that is held: by whom, and what they owe. */
export interface Holding {
  readonly candidate: CandidateInfo;
  readonly electedAtUnixMs: number;
  /** False while the holder still fences its predecessor. */
  readonly announced: boolean;
  readonly actors: readonly Actor[] | null;
  /** An operator took the seat away: no confirmation counts any more, but belief must run out. */
  readonly revoked: boolean;
  readonly request: LeaderRequest | undefined;
  /** The work is done and the seat is only held: so it stays even if the holder dies. */
  readonly held?: Held | undefined;
  /**
   * The holder is a foreign program that counts its confirmations and not its terms: observers are
   * told of no token. Only in what a store has read, never written.
   */
  readonly tokenless?: boolean;
}

/**
 * The one record of an election on a lease store. Every write replaces the whole of it.
 * `token` never falls: releasing vacates and keeps it.
 */
export interface LeaseRecord {
  readonly election: string;
  readonly token: bigint;
  /** Chosen by whoever wrote as a candidate; operators keep it. Tells an attempt's outcome. */
  readonly nonce: string;
  /** D: how long this version must stay unchanged before the holder counts as gone. */
  readonly leaseMs: number;
  readonly ended: boolean;
  readonly holding: Holding | undefined;
  readonly reservation: Reservation | undefined;
  /** Leaders that ended unclean and that no later leader has fenced. */
  readonly unfenced: readonly UncleanLeader[];
  readonly drains: readonly Drain[];
  readonly history: readonly TermSummary[];
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

function readHolding(reader: FieldReader, value: unknown): Holding {
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
    held: reader.optional(holding['held'], (value) => {
      const held = reader.object(value, 'held');
      return {
        ms: reader.duration(held['ms'], 'held.ms'),
        untilUnixMs: reader.number(held['untilUnixMs'], 'held.untilUnixMs'),
      };
    }),
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
