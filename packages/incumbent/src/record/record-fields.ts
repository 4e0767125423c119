/** Reads the fields that the records of all mechanisms share. */
import type { CandidateInfo } from '../base/candidate.ts';
import { RecordDamagedError, RecordTooNewError } from '../base/errors.ts';
import type { EndReason } from '../base/reasons.ts';
import { endReasons } from '../base/reasons.ts';
import type {
  Drain,
  ElectionRecord,
  FenceFailure,
  Held,
  LeaderRequest,
  Reservation,
  TermSummary,
  UncleanLeader,
} from './record.ts';

interface ParsedRecord {
  readonly reader: FieldReader;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** @throws RecordDamagedError */
export function parseRecord(text: string, location: string): ParsedRecord {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new RecordDamagedError(location, 'no JSON', { cause: error });
  }
  const reader = new FieldReader(location);
  return { reader, fields: reader.object(parsed, 'the record') };
}

/**
 * @returns the format of the record
 * @throws RecordTooNewError, RecordDamagedError
 */
export function checkFormat(
  { reader, fields }: ParsedRecord,
  newest: number,
  oldest: number = newest,
): number {
  const format = reader.number(fields['format'], 'format');
  if (format > newest) throw new RecordTooNewError(reader.location, format, newest);
  if (format < oldest || !Number.isInteger(format)) reader.fail(`format ${format}`);
  return format;
}

type SharedFields = Pick<
  ElectionRecord,
  'reservation' | 'unfenced' | 'drains' | 'history' | 'seats'
>;

/** The fields in the order in which they are written. */
export function readSharedFields({ reader, fields }: ParsedRecord): SharedFields {
  return {
    reservation: reader.optional(fields['reservation'], (value) => readReservation(reader, value)),
    unfenced: reader.list(fields['unfenced'], 'unfenced', (value) => readUnclean(reader, value)),
    drains: reader.list(fields['drains'], 'drains', (value) => readDrain(reader, value)),
    history: reader.list(fields['history'], 'history', (value) => readTermSummary(reader, value)),
    seats: reader.optional(fields['seats'], (value) => reader.number(value, 'seats')),
  };
}

/** The shared fields of an election that has had no leader yet. */
export const nobodyYet: SharedFields & { readonly ended: boolean; readonly holding: undefined } = {
  ended: false,
  holding: undefined,
  reservation: undefined,
  unfenced: [],
  drains: [],
  history: [],
};

export function readCandidate(reader: FieldReader, value: unknown, what: string): CandidateInfo {
  const candidate = reader.object(value, what);
  const metadata = reader.object(candidate['metadata'], `${what}.metadata`);
  for (const [key, entry] of Object.entries(metadata)) {
    reader.string(entry, `${what}.metadata.${key}`);
  }
  return {
    id: reader.string(candidate['id'], `${what}.id`),
    incarnation: reader.string(candidate['incarnation'], `${what}.incarnation`),
    addresses: reader.list(candidate['addresses'], `${what}.addresses`, (address) =>
      reader.string(address, `${what}.addresses`),
    ),
    metadata: metadata as Record<string, string>,
  };
}

function readReservation(reader: FieldReader, value: unknown): Reservation {
  const reservation = reader.object(value, 'reservation');
  return {
    for: reader.optional(reservation['for'], (id) => reader.string(id, 'reservation.for')),
    reserveMs: reader.duration(reservation['reserveMs'], 'reservation.reserveMs'),
    untilUnixMs: reader.number(reservation['untilUnixMs'], 'reservation.untilUnixMs'),
  };
}

function readUnclean(reader: FieldReader, value: unknown): UncleanLeader {
  const leader = reader.object(value, 'unfenced');
  const failure = reader.optional(leader['failure'], (found) => readFailure(reader, found));
  return {
    ...readCandidate(reader, value, 'unfenced'),
    token: reader.token(leader['token'], 'unfenced.token'),
    ...(failure && { failure }),
  };
}

function readFailure(reader: FieldReader, value: unknown): FenceFailure {
  const failure = reader.object(value, 'unfenced.failure');
  const why = reader.optional(failure['why'], (text) =>
    reader.string(text, 'unfenced.failure.why'),
  );
  const by = reader.string(failure['by'], 'unfenced.failure.by');
  return { by, ...(why !== undefined && { why }) };
}

function readDrain(reader: FieldReader, value: unknown): Drain {
  const drain = reader.object(value, 'drain');
  return {
    id: reader.string(drain['id'], 'drain.id'),
    untilUnixMs: reader.number(drain['untilUnixMs'], 'drain.untilUnixMs'),
  };
}

export function readRequest(reader: FieldReader, value: unknown): LeaderRequest {
  const request = reader.object(value, 'request');
  const nonce = reader.string(request['nonce'], 'request.nonce');
  return reader.oneOf(request['kind'], 'request.kind', ['vacate', 'transfer']) === 'vacate'
    ? { kind: 'vacate', nonce }
    : { kind: 'transfer', nonce, to: reader.string(request['to'], 'request.to') };
}

export function readHeld(reader: FieldReader, value: unknown): Held {
  const held = reader.object(value, 'held');
  return {
    ms: reader.duration(held['ms'], 'held.ms'),
    untilUnixMs: reader.number(held['untilUnixMs'], 'held.untilUnixMs'),
  };
}

/** @returns undefined for a holder that is ready, or does not say */
export function readReady(reader: FieldReader, value: unknown): false | undefined {
  const isReady = reader.optional(value, (given) => reader.boolean(given, 'ready'));
  return isReady === false ? false : undefined;
}

function readTermSummary(reader: FieldReader, value: unknown): TermSummary {
  const term = reader.object(value, 'term');
  return {
    token: reader.token(term['token'], 'term.token'),
    id: reader.string(term['id'], 'term.id'),
    incarnation: reader.string(term['incarnation'], 'term.incarnation'),
    fromUnixMs: reader.number(term['fromUnixMs'], 'term.fromUnixMs'),
    toUnixMs: reader.number(term['toUnixMs'], 'term.toUnixMs'),
    why: reader.oneOf<EndReason | 'unclean'>(term['why'], 'term.why', [...endReasons, 'unclean']),
  };
}

/** Takes JSON apart. Every mismatch is a `RecordDamagedError` that names the field. */
export class FieldReader {
  readonly location: string;

  constructor(location: string) {
    this.location = location;
  }

  fail(what: string): never {
    throw new RecordDamagedError(this.location, `unexpected ${what}`);
  }

  object(value: unknown, what: string): Record<string, unknown> {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) this.fail(what);
    return value as Record<string, unknown>;
  }

  string(value: unknown, what: string): string {
    if (typeof value !== 'string') this.fail(what);
    return value;
  }

  boolean(value: unknown, what: string): boolean {
    if (typeof value !== 'boolean') this.fail(what);
    return value;
  }

  number(value: unknown, what: string): number {
    if (typeof value !== 'number' || !Number.isFinite(value)) this.fail(what);
    return value;
  }

  duration(value: unknown, what: string): number {
    const ms = this.number(value, what);
    if (ms < 0 || ms > 2 ** 31 - 1) this.fail(what);
    return ms;
  }

  token(value: unknown, what: string): bigint {
    if (typeof value !== 'string' || !/^\d{1,39}$/.test(value)) this.fail(what);
    return BigInt(value);
  }

  oneOf<T extends string>(value: unknown, what: string, known: readonly T[]): T {
    const found = known.find((entry) => entry === value);
    if (found === undefined) this.fail(what);
    return found;
  }

  optional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
    return value === undefined || value === null ? undefined : read(value);
  }

  list<T>(value: unknown, what: string, read: (value: unknown) => T): readonly T[] {
    if (!Array.isArray(value)) this.fail(what);
    return value.map(read);
  }
}
