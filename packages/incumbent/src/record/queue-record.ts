import type { ElectionRecord, Holding } from './record.ts';
import type { FieldReader } from './record-fields.ts';
import {
  checkFormat,
  nobodyYet,
  parseRecord,
  readCandidate,
  readHeld,
  readRequest,
  readSharedFields,
} from './record-fields.ts';

/** The format this version writes, and the newest it reads. */
export const queueRecordFormat = 1;

/** Who leads, or led and never said that it stopped. It is announced by being named. */
export interface QueueHolding extends Holding {
  /** The name of its place. */
  readonly place: string;
  /** D of its handle: for people. */
  readonly leaseMs: number;
}

/**
 * Who leads or led last. Committed with a check of the leader's place before it is announced, and
 * with the deletion of that place when it ends clean. So whoever leads is named here, and who is
 * named here without being there has ended unclean.
 */
export interface QueueRecord extends ElectionRecord<QueueHolding> {
  /** The place of the last term that was announced; empty before the first. */
  readonly place: string;
  /** H of the last leader: how long its successor has to wait if it ended unclean. */
  readonly beliefMs: number;
}

/** The record as JSON; tokens as decimal strings. */
export function encodeQueueRecord(record: QueueRecord): string {
  // Not by a replacer, which would be called for every field of fifty terms at each hand-over.
  const { election, token, place, nonce, beliefMs, ended, holding, reservation } = record;
  return JSON.stringify({
    ...{ incumbent: 'queue', format: queueRecordFormat, election, token: token.toString() },
    ...{ place, nonce, beliefMs, ended, leadership: holding, reservation },
    unfenced: record.unfenced.map(withText),
    drains: record.drains,
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
  };
}

/** The record of an election that nobody has led. */
export function emptyQueueRecord(election: string, nonce: string): QueueRecord {
  return { election, token: 0n, place: '', nonce, beliefMs: 0, ...nobodyYet };
}
