/**
 * The record of an election as an entry that Go programs on vimeo/leaderelection can read. Data
 * that they have no field for is in ours, as JSON. They write entries anew, without our field. So
 * an entry without it, or one that disagrees with it, was written by another program.
 */
import type { CandidateInfo } from '../../base/candidate.ts';
import { parametersBase64Key, parametersKey } from '../../base/connection-parameters.ts';
import { StoreUnsuitableError } from '../../base/errors.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { decodeLeaseRecord, encodeLeaseRecord } from '../../record/lease-record.ts';
import type { RaceEntry, Timestamp } from './race-entry.ts';
import { largestElectionNumber, timestampOf, unixMsOf } from './race-entry.ts';

/** No program waits so long, and Go can still count it in nanoseconds. */
const never: Timestamp = timestampOf(Date.UTC(2200, 0));

const foreignPrefix = 'foreign:';

export interface EntryFormat {
  readonly election: string;
  /** For errors. */
  readonly location: string;
  /** How far a Go program's clock and that of the store may be apart. */
  readonly maxClockSkewMs: number;
  /** ρ of our own clock. */
  readonly clockDrift: number;
}

/** The store's account of a version of the object. */
export interface Stored {
  readonly version: string;
  /**
   * When it was written, by the store's clock, no later than it was. Undefined where that
   * was not asked.
   */
  readonly writtenUnixMs: number | undefined;
}

/** @throws RecordDamagedError, RecordTooNewError */
export function recordOfEntry(entry: RaceEntry, stored: Stored, format: EntryFormat): LeaseRecord {
  return ourRecord(entry, format) ?? foreignRecord(entry, stored, format);
}

/** The record in our field. Undefined: another program wrote the entry. */
export function ourRecord(
  entry: RaceEntry,
  { location }: Pick<EntryFormat, 'location'>,
): LeaseRecord | undefined {
  if (entry.record === undefined) return undefined;
  const record = decodeLeaseRecord(entry.record, location);
  // A program that keeps unknown fields has written ours along with its own.
  const isOurs =
    entry.electionNumber === electionNumber(record.token) &&
    entry.leaderId === (record.holding?.candidate.id ?? '');
  return isOurs ? record : undefined;
}

/**
 * A Go program leads until its clock passes `term_expiry`. So others wait for the time from the
 * writing to the expiry, by the store's clock, and for as long as clocks may differ.
 */
function foreignRecord(entry: RaceEntry, stored: Stored, format: EntryFormat): LeaseRecord {
  const { writtenUnixMs } = stored;
  if (writtenUnixMs === undefined) {
    throw new StoreUnsuitableError(
      `the store does not tell when ${format.location} was written (no Last-Modified, no "updated"), ` +
        'and without that nobody knows how long the Go program that wrote it may lead',
    );
  }
  const termMs = Math.max(0, unixMsOf(entry.termExpiry) - writtenUnixMs);
  return {
    election: format.election,
    token: entry.electionNumber,
    // Every write of that program counts as a confirmation.
    nonce: `${foreignPrefix}${stored.version}`,
    leaseMs: Math.ceil((termMs + format.maxClockSkewMs) * (1 + format.clockDrift)),
    ended: false,
    holding: {
      candidate: foreignCandidate(entry),
      electedAtUnixMs: writtenUnixMs,
      announced: true,
      actors: null,
      revoked: false,
      request: undefined,
      tokenless: true,
    },
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
  };
}

function foreignCandidate(entry: RaceEntry): CandidateInfo {
  return {
    id: entry.leaderId,
    incarnation: foreignPrefix + entry.leaderId,
    addresses: entry.hostPorts,
    metadata: metadataOf(entry.connectionParameters),
  };
}

/** True for a leader that is no candidate of ours: it reads no requests. */
export function isForeign(incarnation: string): boolean {
  return incarnation.startsWith(foreignPrefix);
}

/** When an entry is written. */
export interface Sending {
  /** This machine's wall clock, read just before it is sent. */
  readonly wallMs: number;
  /** The time by the store's clock at the same moment, or as late as it can be. */
  readonly storeMs: number;
  /** Until when the sender may believe in the entry, by the clock of any Go program. */
  readonly believedUntilMs: number;
}

/**
 * The entry that says `next`.
 * @param base the entry that it replaces
 */
export function entryOfRecord(
  base: { readonly entry: RaceEntry; readonly record: LeaseRecord } | undefined,
  next: LeaseRecord,
  sending: Sending,
): RaceEntry {
  const candidate = next.holding?.candidate;
  return {
    electionNumber: electionNumber(next.token),
    leaderId: candidate?.id ?? '',
    hostPorts: candidate?.addresses ?? [],
    termExpiry:
      base !== undefined && isByOperator(base.record, next)
        ? base.entry.termExpiry
        : termExpiry(next, sending),
    connectionParameters: connectionParameters(candidate?.metadata ?? {}),
    record: encodeLeaseRecord(next),
  };
}

/** True when only fields beside the seat have changed. That prolongs no term. */
function isByOperator(base: LeaseRecord, next: LeaseRecord): boolean {
  return (
    base.nonce === next.nonce &&
    base.ended === next.ended &&
    (base.holding === undefined) === (next.holding === undefined) &&
    base.reservation?.untilUnixMs === next.reservation?.untilUnixMs
  );
}

/**
 * Until then no Go program may take the seat. Never absent and never zero: they can bear neither.
 */
function termExpiry(
  { ended, holding, leaseMs, reservation }: LeaseRecord,
  { wallMs, storeMs, believedUntilMs }: Sending,
): Timestamp {
  if (ended) return never;
  // The record has times of this machine's clock, which may be far off. A Go program's is not.
  const byStore = (unixMs: number) => storeMs + (unixMs - wallMs);
  if (holding === undefined) {
    // Nobody believes any more. So the earlier of two times, or a Go program would wait for a second.
    const vacantMs = Math.min(wallMs, storeMs);
    return timestampOf(
      reservation === undefined ? vacantMs : Math.max(vacantMs, byStore(reservation.untilUnixMs)),
    );
  }
  const heldUntilMs = byStore(holding.held?.untilUnixMs ?? wallMs);
  return timestampOf(Math.max(storeMs + leaseMs, believedUntilMs, heldUntilMs));
}

function electionNumber(token: bigint): bigint {
  return token < largestElectionNumber ? token : largestElectionNumber;
}

function metadataOf(parameters: Uint8Array): Readonly<Record<string, string>> {
  if (parameters.length === 0) return {};
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    return { [parametersKey]: decoder.decode(parameters) };
  } catch {
    return { [parametersBase64Key]: Buffer.from(parameters).toString('base64') };
  }
}

/**
 * Text goes before packed bytes, and a value that is no base64 is left out. A leader may publish
 * anything, and must not lose its seat by it.
 */
function connectionParameters(metadata: Readonly<Record<string, string>>): Uint8Array {
  const text = metadata[parametersKey];
  if (text !== undefined) return new TextEncoder().encode(text);
  const packed = metadata[parametersBase64Key] ?? '';
  const bytes = Buffer.from(packed, 'base64');
  return bytes.toString('base64') === packed ? new Uint8Array(bytes) : new Uint8Array();
}
