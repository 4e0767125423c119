import type { ElectionRecord, Holding } from './record.ts';
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

/** The newest format that this version reads, and the one that it writes. */
export const queueRecordFormat = 1;

/**
 * The present leader, or the last one when it never said that it stopped. To be named is to be
 * announced.
 */
export interface QueueHolding extends Holding {
  /** The name of the leader's place. */
  readonly place: string;
  /** D of the leader's handle: for people. */
  readonly leaseMs: number;
}

/**
 * The record of an election in a queue. Before a term is announced, it is committed with a check of
 * the leader's place. At a clean end, it is committed with the deletion of that place. So the
 * leader is always named here, and a named leader without a place has ended unclean.
 */
export interface QueueRecord extends ElectionRecord<QueueHolding> {
  /** The place of the last term that was announced. Empty before the first. */
  readonly place: string;
  /** H of the last leader: how long its successor has to wait if it ended unclean. */
  readonly beliefMs: number;
}

/** The record as JSON, with tokens as decimal strings. */
export function encodeQueueRecord(record: QueueRecord): string {
  // A replacer would be called for every field of fifty terms at each hand-over.
  const { election, token, place, nonce, beliefMs, ended, holding, reservation } = record;
  return JSON.stringify({
    ...{ incumbent: 'queue', format: queueRecordFormat, election, token: token.toString() },
    ...{ place, nonce, beliefMs, ended, leadership: holding, reservation },
    unfenced: record.unfenced.map(withText),
    drains: record.drains,
    history: record.history.map(withText),
    seats: record.seats,
  });
}

function withText<Fields extends { readonly token: bigint }>(fields: Fields): object {
  return { ...fields, token: fields.token.toString() };
}

/** True when this is a record of ours, of any format. False: it is the data of another program. */
export function isQueueRecord(text: string): boolean {
  return text.startsWith('{"incumbent":"queue"');
}

/**
 * @param location the node or key, for the error
 * @throws RecordDamagedError when the text is no record of ours
 * @throws RecordTooNewError when a newer version wrote it
 */
export function decodeQueueRecord(text: string, location: string): QueueRecord {
  const parsed = parseRecord(text, location);
  const { reader, fields } = parsed;
  if (fields['incumbent'] !== 'queue') reader.fail('contents');
  checkFormat(parsed, queueRecordFormat);
  return {
    election: reader.string(fields['election'], 'election'),
    token: reader.token(fields['token'], 'token'),
    place: reader.string(fields['place'], 'place'),
    nonce: reader.string(fields['nonce'], 'nonce'),
    beliefMs: reader.duration(fields['beliefMs'], 'beliefMs'),
    ended: reader.boolean(fields['ended'], 'ended'),
    holding: reader.optional(fields['leadership'], (value) => readHolding(reader, value)),
    ...readSharedFields(parsed),
  };
}

function readHolding(reader: FieldReader, value: unknown): QueueHolding {
  const holding = reader.object(value, 'leadership');
  return {
    candidate: readCandidate(reader, holding['candidate'], 'leadership.candidate'),
    place: reader.string(holding['place'], 'leadership.place'),
    electedAtUnixMs: reader.number(holding['electedAtUnixMs'], 'leadership.electedAtUnixMs'),
    leaseMs: reader.duration(holding['leaseMs'], 'leadership.leaseMs'),
    revoked: reader.boolean(holding['revoked'], 'leadership.revoked'),
    request: reader.optional(holding['request'], (entry) => readRequest(reader, entry)),
    held: reader.optional(holding['held'], (entry) => readHeld(reader, entry)),
    ready: readReady(reader, holding['ready']),
  };
}

/** The record of an election that has had no leader yet. */
export function emptyQueueRecord(election: string, nonce: string): QueueRecord {
  return { election, token: 0n, place: '', nonce, beliefMs: 0, ...nobodyYet };
}
