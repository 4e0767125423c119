import type { CandidateInfo } from '../../base/candidate.ts';
import { RecordDamagedError, RecordTooNewError } from '../../base/errors.ts';
import type {
  Drain,
  LeaderRequest,
  TermSummary,
  Terms,
  UncleanLeader,
} from '../../record/record.ts';
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
export const queueRecordFormat = 1;

/** Who leads, or led and never said that it stopped. */
export interface Leadership {
  readonly candidate: CandidateInfo;
  /** The name of its place. */
  readonly place: string;
  readonly electedAtUnixMs: number;
  /** D of its handle: for people. */
  readonly leaseMs: number;
  /** An operator took the seat away: its place is deleted, but its belief must run out. */
  readonly revoked: boolean;
  readonly request: LeaderRequest | undefined;
  /** The work is done and the seat is only held: nobody takes it before then. */
  readonly held?: { readonly ms: number; readonly untilUnixMs: number } | undefined;
}

/**
 * Who leads or led last. Committed with a check of the leader's place before it is announced, and
 * with the deletion of that place when it ends clean. So whoever leads is named here, and who is
 * named here without being there has ended unclean.
 */
export interface QueueRecord {
  readonly election: string;
  /** Of the last term that was announced. */
  readonly token: bigint;
  /** The place of the last term that was announced; empty before the first. */
  readonly place: string;
  /** Chosen by whoever wrote as a candidate; operators keep it. Tells an attempt's outcome. */
  readonly nonce: string;
  /** H of the last leader: how long its successor has to wait if it ended unclean. */
  readonly beliefMs: number;
  readonly ended: boolean;
  readonly leadership: Leadership | undefined;
  readonly reservation: Reservation | undefined;
  /** Leaders that ended unclean and that no later leader has fenced. */
  readonly unfenced: readonly UncleanLeader[];
  readonly drains: readonly Drain[];
  readonly history: readonly TermSummary[];
}

/** The record as JSON; tokens as decimal strings. */
export function encodeQueueRecord(record: QueueRecord): string {
  // Not by a replacer, which would be called for every field of fifty terms at each hand-over.
  return JSON.stringify({
    incumbent: 'queue',
    format: queueRecordFormat,
    ...record,
    token: record.token.toString(),
    unfenced: record.unfenced.map(withText),
    history: record.history.map(withText),
  });
}

function withText<Fields extends { readonly token: bigint }>(fields: Fields): object {
  return { ...fields, token: fields.token.toString() };
}

/** True when this is a record of ours, of whatever format; else it is somebody else's data. */
export function isQueueRecord(text: string): boolean {
  return text.startsWith('{"incumbent":"queue"');
}

/**
 * @param location the node or key, for the error
 * @throws RecordDamagedError, RecordTooNewError
 */
export function decodeQueueRecord(text: string, location: string): QueueRecord {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new RecordDamagedError(location, 'no JSON', { cause: error });
  }
  const reader = new FieldReader(location);
  const fields = reader.object(parsed, 'the record');
  if (fields['incumbent'] !== 'queue') reader.fail('contents');
  const format = reader.number(fields['format'], 'format');
  if (format > queueRecordFormat) throw new RecordTooNewError(location, format, queueRecordFormat);
  if (format !== queueRecordFormat) reader.fail(`format ${format}`);
  return {
    election: reader.string(fields['election'], 'election'),
    token: reader.token(fields['token'], 'token'),
    place: reader.string(fields['place'], 'place'),
    nonce: reader.string(fields['nonce'], 'nonce'),
    beliefMs: reader.duration(fields['beliefMs'], 'beliefMs'),
    ended: reader.boolean(fields['ended'], 'ended'),
    leadership: reader.optional(fields['leadership'], (value) => readLeadership(reader, value)),
    reservation: reader.optional(fields['reservation'], (value) => readReservation(reader, value)),
    unfenced: reader.list(fields['unfenced'], 'unfenced', (value) => readUnclean(reader, value)),
    drains: reader.list(fields['drains'], 'drains', (value) => readDrain(reader, value)),
    history: reader.list(fields['history'], 'history', (value) => readTermSummary(reader, value)),
  };
}

function readLeadership(reader: FieldReader, value: unknown): Leadership {
  const leadership = reader.object(value, 'leadership');
  return {
    candidate: readCandidate(reader, leadership['candidate'], 'leadership.candidate'),
    place: reader.string(leadership['place'], 'leadership.place'),
    electedAtUnixMs: reader.number(leadership['electedAtUnixMs'], 'leadership.electedAtUnixMs'),
    leaseMs: reader.duration(leadership['leaseMs'], 'leadership.leaseMs'),
    revoked: reader.boolean(leadership['revoked'], 'leadership.revoked'),
    request: reader.optional(leadership['request'], (entry) => readRequest(reader, entry)),
    held: reader.optional(leadership['held'], (entry) => {
      const held = reader.object(entry, 'held');
      return {
        ms: reader.duration(held['ms'], 'held.ms'),
        untilUnixMs: reader.number(held['untilUnixMs'], 'held.untilUnixMs'),
      };
    }),
  };
}

export function termsOf(record: QueueRecord | undefined): Terms {
  if (record === undefined) return { token: 0n, history: [], holder: undefined };
  const { token, history, leadership } = record;
  return { token, history, holder: leadership && { ...leadership.candidate, announced: true } };
}

/** The record of an election that nobody has led. */
export function emptyQueueRecord(election: string, nonce: string): QueueRecord {
  return {
    election,
    token: 0n,
    place: '',
    nonce,
    beliefMs: 0,
    ended: false,
    leadership: undefined,
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
  };
}
