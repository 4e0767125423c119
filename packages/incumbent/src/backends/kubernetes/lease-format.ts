/**
 * The record of an election as a Lease that client-go can use. The spec is client-go's. Data that
 * it has no field for is in annotations, which client-go keeps when it writes the spec. So a spec
 * that is not the one we wrote shows that another program has led since.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { RecordDamagedError, StoreUnsuitableError } from '../../base/errors.ts';
import type { Timing } from '../../base/timing.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { decodeLeaseRecord, encodeLeaseRecord } from '../../record/lease-record.ts';
import type { UncleanLeader } from '../../record/record.ts';
import { appendTerm, unfencedLimit } from '../../record/record.ts';
import type { Lease } from './client.ts';

/** The whole record, as JSON or packed. */
export const recordAnnotation = 'incumbent.dev/record';
/** The token alone, for people and for programs in other languages. */
export const tokenAnnotation = 'incumbent.dev/token';
/** The spec that was written together with the record. */
export const specAnnotation = 'incumbent.dev/spec';

/** The leases of one name have one value of this label. */
export const shardsLabel = 'incumbent.dev/shards';

/** Larger records are packed. */
const largestPlainBytes = 32 * 1024;
/** API servers take 256 KiB of annotations in total, keys and values together. */
const largestRecordBytes = 240 * 1024;
/** Far more than any record has. */
const largestUnpackedBytes = 4 * 1024 * 1024;
const packedPrefix = 'deflate:';

/** The fields of a spec that we look at. Absent ones are empty or 0, as client-go reads them. */
interface Spec {
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
  readonly acquireTime: string;
  readonly renewTime: string;
  readonly leaseTransitions: number;
}

export interface LeaseFormat {
  readonly election: string;
  /** For errors. */
  readonly location: string;
  readonly timing: Timing;
  /** Given for a lease of shards. */
  readonly label?: string | undefined;
}

/**
 * @returns undefined when no candidate has led yet, as far as the Lease tells
 * @throws RecordDamagedError, RecordTooNewError
 */
export function recordOfLease(lease: Lease, format: LeaseFormat): LeaseRecord | undefined {
  const spec = specOf(lease);
  const text = lease.metadata.annotations?.[recordAnnotation];
  if (text === undefined) return recordWithoutOurs(lease, spec, format);
  const location = `${format.location}, annotation ${recordAnnotation},`;
  const ours = decodeLeaseRecord(unpack(text, location), location);
  const written = writtenSpec(lease, format);
  if (sameSpec(spec, written)) return ours;
  const isLedByUs = ours.holding !== undefined && !isForeign(ours.holding.candidate.incarnation);
  const sameTerm =
    spec.holderIdentity === written.holderIdentity &&
    spec.leaseTransitions === written.leaseTransitions &&
    spec.acquireTime === written.acquireTime;
  // Some versions of client-go erase their successor when they release, and people edit Leases.
  // Only a leader itself can say that it leads no more. So all candidates wait, and the leader puts
  // the spec right.
  const isErased = spec.holderIdentity === '' && spec.leaseTransitions === written.leaseTransitions;
  if (isLedByUs && (sameTerm || isErased)) return ours;
  if (sameTerm) {
    return ours.holding === undefined ? ours : { ...ours, ...foreignWrite(lease, spec, format) };
  }
  // client-go counts a transition for every new holder, and so do we. A program that does not count
  // them makes one new term of all its writes since our last one.
  const transitions = Math.max(
    spec.holderIdentity === '' ? 0 : 1,
    spec.leaseTransitions - written.leaseTransitions,
  );
  return {
    ...ours,
    ...foreignWrite(lease, spec, format),
    token: ours.token + BigInt(transitions),
    holding: foreignHolding(spec),
    reservation: undefined,
    ...(isLedByUs ? endedUnclean(ours, spec) : {}),
  };
}

/**
 * The election that the Lease is of, by its own words. Empty: they cannot be read.
 * @returns undefined for a Lease that has none of our annotations
 */
export function electionOfLease({ metadata }: Lease, location: string): string | undefined {
  const { annotations = {} } = metadata;
  const text = annotations[recordAnnotation];
  if (text === undefined) return annotations[tokenAnnotation] === undefined ? undefined : '';
  try {
    return decodeLeaseRecord(unpack(text, location), location).election;
  } catch {
    return '';
  }
}

/** The Lease that says `next`. All parts of `base` that are not ours stay as they are. */
export function leaseOfRecord(
  base: Lease | undefined,
  next: LeaseRecord,
  format: LeaseFormat,
  leaseName: string,
  now: { readonly wallMs: number; readonly uniqueId: string },
): object {
  const changed = nextSpec(base, next, format, microTime(now.wallMs));
  const spec = { ...base?.spec, ...changed };
  const annotations = {
    ...base?.metadata.annotations,
    [recordAnnotation]: pack(encodeLeaseRecord(next), format.location),
    [tokenAnnotation]: next.token.toString(),
    // A server keeps the resourceVersion where nothing has changed. So this value always changes.
    [specAnnotation]: JSON.stringify({ ...specOf({ metadata: {}, spec }), write: now.uniqueId }),
  };
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    ...base,
    metadata: {
      ...{ name: leaseName, ...base?.metadata, annotations },
      ...(format.label !== undefined && {
        labels: { ...base?.metadata.labels, [shardsLabel]: format.label },
      }),
    },
    spec,
  };
}

/**
 * Our name to others. client-go compares this name alone, so the incarnation is in it. A restarted
 * process has another name, and a Go program with the candidate's id is not us.
 */
function holderIdentity({ candidate }: NonNullable<LeaseRecord['holding']>): string {
  return `${candidate.id}_${candidate.incarnation}`;
}

/** The fields of the spec that change. */
function nextSpec(
  base: Lease | undefined,
  next: LeaseRecord,
  format: LeaseFormat,
  now: string,
): Partial<Spec> {
  const current = base === undefined ? undefined : recordOfLease(base, format);
  const spec = base === undefined ? undefined : specOf(base);
  const incarnation = next.holding?.candidate.incarnation;
  const staysSeated = incarnation === current?.holding?.candidate.incarnation;
  // An operator's write prolongs no lease.
  if (spec !== undefined && staysSeated && next.nonce === current?.nonce) return {};
  const leaseTransitions = spec?.leaseTransitions ?? 0;
  if (next.holding === undefined) {
    return {
      holderIdentity: '',
      leaseDurationSeconds: 1,
      acquireTime: now,
      renewTime: now,
      leaseTransitions,
    };
  }
  const held = {
    holderIdentity: holderIdentity(next.holding),
    leaseDurationSeconds: secondsFor(next.leaseMs, format.timing),
    renewTime: now,
  };
  if (base !== undefined && staysSeated) {
    // Taken from our own last write: another program may have put something else in its place.
    const { acquireTime } = writtenSpec(base, format);
    return { ...held, acquireTime, leaseTransitions };
  }
  return {
    ...held,
    acquireTime: now,
    leaseTransitions: spec === undefined ? 0 : Math.min(spec.leaseTransitions + 1, 2 ** 31 - 1),
  };
}

/**
 * How long Go programs are told to wait, in s. They look for changes in a record whose times are
 * whole seconds. So of all confirmations within one second they see only the first, and count from
 * it. When that count ends, our belief after the last of those confirmations must be over. With the
 * default timing, from a lease of 10 s on, this is the lease itself.
 */
export function secondsFor(leaseMs: number, { beliefMs, clockDrift }: Timing): number {
  const unseenMs = ((1_000 + beliefMs) * (1 + clockDrift)) / (1 - clockDrift);
  return Math.ceil(Math.max(leaseMs, unseenMs) / 1_000);
}

/** The record of a Lease that only others have written, or that has lost our annotation. */
function recordWithoutOurs(lease: Lease, spec: Spec, format: LeaseFormat): LeaseRecord | undefined {
  const text = lease.metadata.annotations?.[tokenAnnotation];
  if (text !== undefined && !/^\d{1,39}$/.test(text)) {
    throw new RecordDamagedError(
      `${format.location}, annotation ${tokenAnnotation},`,
      'no decimal number',
    );
  }
  const wasLed = spec.holderIdentity !== '' || spec.renewTime !== '' || spec.leaseTransitions > 0;
  if (!wasLed && text === undefined) return undefined;
  const terms = wasLed ? spec.leaseTransitions + 1 : 0;
  return {
    election: format.election,
    token: BigInt(text ?? 0) + BigInt(terms),
    ...foreignWrite(lease, spec, format),
    ended: false,
    holding: foreignHolding(spec),
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
  };
}

/**
 * Every write of another program counts as a confirmation. That can only make others wait longer.
 */
function foreignWrite(
  lease: Lease,
  spec: Spec,
  { timing }: LeaseFormat,
): Pick<LeaseRecord, 'nonce' | 'leaseMs'> {
  const seconds = Math.min(spec.leaseDurationSeconds, (2 ** 31 - 1) / 1_000);
  return {
    nonce: `foreign:${lease.metadata.resourceVersion}`,
    leaseMs: seconds > 0 ? seconds * 1_000 : timing.leaseMs,
  };
}

function foreignHolding(spec: Spec): LeaseRecord['holding'] {
  const { holderIdentity: id, leaseTransitions, acquireTime } = spec;
  if (id === '') return undefined;
  return {
    candidate: {
      id,
      incarnation: `${foreignPrefix}${id}:${leaseTransitions}:${acquireTime}`,
      addresses: [],
      metadata: {},
    },
    electedAtUnixMs: unixMs(acquireTime),
    announced: true,
    actors: null,
    revoked: false,
    request: undefined,
  };
}

const foreignPrefix = 'foreign:';

/** True for a leader that is no candidate of ours. It reads no requests. */
export function isForeign(incarnation: string): boolean {
  return incarnation.startsWith(foreignPrefix);
}

/**
 * Another program followed a leader of ours that never said that it stopped. No leader
 * has fenced it.
 */
function endedUnclean(
  { holding, token, unfenced, history }: LeaseRecord,
  spec: Spec,
): Pick<LeaseRecord, 'unfenced' | 'history'> {
  if (holding?.announced !== true) return { unfenced, history };
  const { candidate, electedAtUnixMs } = holding;
  const leader: UncleanLeader = { ...candidate, token };
  return {
    unfenced: [...unfenced, leader].slice(-unfencedLimit),
    history: appendTerm(history, {
      token,
      id: candidate.id,
      incarnation: candidate.incarnation,
      fromUnixMs: electedAtUnixMs,
      toUnixMs: unixMs(spec.acquireTime),
      why: 'unclean',
    }),
  };
}

function specOf({ spec = {} }: Lease): Spec {
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  const count = (value: unknown) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
  return {
    holderIdentity: text(spec.holderIdentity),
    leaseDurationSeconds: count(spec.leaseDurationSeconds),
    acquireTime: text(spec.acquireTime),
    renewTime: text(spec.renewTime),
    leaseTransitions: count(spec.leaseTransitions),
  };
}

function writtenSpec(lease: Lease, { location }: LeaseFormat): Spec {
  const text = lease.metadata.annotations?.[specAnnotation];
  const where = `${location}, annotation ${specAnnotation},`;
  if (text === undefined) {
    throw new RecordDamagedError(where, `missing, though ${recordAnnotation} is there`);
  }
  try {
    return specOf({ metadata: {}, spec: JSON.parse(text) as NonNullable<Lease['spec']> });
  } catch (error) {
    throw new RecordDamagedError(where, 'no JSON object', { cause: error });
  }
}

function sameSpec(a: Spec, b: Spec): boolean {
  return (
    a.holderIdentity === b.holderIdentity &&
    a.renewTime === b.renewTime &&
    a.leaseTransitions === b.leaseTransitions &&
    a.acquireTime === b.acquireTime &&
    a.leaseDurationSeconds === b.leaseDurationSeconds
  );
}

/** As the API server writes it back: UTC, six digits. */
function microTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z');
}

function unixMs(time: string): number {
  const ms = Date.parse(time);
  return Number.isFinite(ms) ? ms : 0;
}

function pack(json: string, location: string): string {
  const bytes = Buffer.byteLength(json);
  if (bytes <= largestPlainBytes) return json;
  const packed = packedPrefix + deflateRawSync(json).toString('base64');
  if (packed.length > largestRecordBytes) {
    throw new StoreUnsuitableError(
      `the record of ${location} takes ${packed.length} bytes, and Kubernetes keeps at most ` +
        `${largestRecordBytes} of it: make metadata and addresses of the candidates smaller`,
    );
  }
  return packed;
}

function unpack(text: string, location: string): string {
  if (!text.startsWith(packedPrefix)) return text;
  try {
    const packed = Buffer.from(text.slice(packedPrefix.length), 'base64');
    return inflateRawSync(packed, { maxOutputLength: largestUnpackedBytes }).toString();
  } catch (error) {
    throw new RecordDamagedError(location, 'cannot be unpacked', { cause: error });
  }
}
