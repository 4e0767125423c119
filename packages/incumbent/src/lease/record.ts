import type { CandidateInfo } from '../candidate.ts';
import type { Actor, Held } from '../contest.ts';
import { RecordDamagedError, RecordTooNewError } from '../errors.ts';
import type { EndReason } from '../reasons.ts';
import { endReasons } from '../reasons.ts';
import type { Drain, LeaderRequest, TermSummary, UncleanLeader } from '../record.ts';
import { drainLimit } from '../record.ts';

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
}

/**
 * After a release: who may take the seat first. Over when a candidate has seen it for `reserveMs` by
 * its own clock, or when its wall clock is past `untilUnixMs`, so that candidates that do not live
 * long can wait it out too. Not a matter of safety: nobody believes.
 */
export interface Reservation {
  /** Candidate id; undefined: nobody. */
  readonly for: string | undefined;
  readonly reserveMs: number;
  readonly untilUnixMs: number;
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

/** The drains that still count, for the next record. */
export function currentDrains(record: LeaseRecord | undefined, wallMs: number): readonly Drain[] {
  return (record?.drains ?? [])
    .filter(({ untilUnixMs }) => untilUnixMs > wallMs)
    .slice(-drainLimit);
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
    reservation: reader.optional(fields['reservation'], (value) => {
      const reservation = reader.object(value, 'reservation');
      return {
        for: reader.optional(reservation['for'], (id) => reader.string(id, 'reservation.for')),
        reserveMs: reader.duration(reservation['reserveMs'], 'reservation.reserveMs'),
        untilUnixMs: reader.number(reservation['untilUnixMs'], 'reservation.untilUnixMs'),
      };
    }),
    unfenced: reader.list(fields['unfenced'], 'unfenced', (value) => ({
      ...readCandidate(reader, value, 'unfenced'),
      token: reader.token(reader.object(value, 'unfenced')['token'], 'unfenced.token'),
    })),
    drains: reader.list(fields['drains'], 'drains', (value) => {
      const drain = reader.object(value, 'drain');
      return {
        id: reader.string(drain['id'], 'drain.id'),
        untilUnixMs: reader.number(drain['untilUnixMs'], 'drain.untilUnixMs'),
      };
    }),
    history: reader.list(fields['history'], 'history', (value) => {
      const term = reader.object(value, 'term');
      return {
        token: reader.token(term['token'], 'term.token'),
        id: reader.string(term['id'], 'term.id'),
        incarnation: reader.string(term['incarnation'], 'term.incarnation'),
        fromUnixMs: reader.number(term['fromUnixMs'], 'term.fromUnixMs'),
        toUnixMs: reader.number(term['toUnixMs'], 'term.toUnixMs'),
        why: reader.oneOf<EndReason | 'unclean'>(term['why'], 'term.why', [
          ...endReasons,
          'unclean',
        ]),
      };
    }),
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
    request: reader.optional(holding['request'], (entry): LeaderRequest => {
      const request = reader.object(entry, 'request');
      const nonce = reader.string(request['nonce'], 'request.nonce');
      return reader.oneOf(request['kind'], 'request.kind', ['vacate', 'transfer']) === 'vacate'
        ? { kind: 'vacate', nonce }
        : { kind: 'transfer', nonce, to: reader.string(request['to'], 'request.to') };
    }),
  };
}

function readCandidate(reader: FieldReader, value: unknown, what: string): CandidateInfo {
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

function readActor(reader: FieldReader, value: unknown): Actor {
  const actor = reader.object(value, 'actor');
  for (const [key, entry] of Object.entries(actor)) {
    if (typeof entry !== 'string' && typeof entry !== 'number') reader.fail(`actor.${key}`);
  }
  return actor as Actor;
}

/** Takes JSON apart; every mismatch is a `RecordDamagedError` that names the field. */
class FieldReader {
  readonly #location: string;

  constructor(location: string) {
    this.#location = location;
  }

  fail(what: string): never {
    throw new RecordDamagedError(this.#location, `unexpected ${what}`);
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
