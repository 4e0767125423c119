import type { Scope } from '../../core/contest.ts';
import { KnownRecord } from '../../mechanisms/lease/known-record.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { decodeRecordOf, encodeLeaseRecord } from '../../record/lease-record.ts';
import type { TagForm } from './etag.ts';
import type { Condition, Found, Objects } from './objects.ts';
import { locationOf } from './objects.ts';
import type { Proof } from './proof.ts';

/** The version of an object that is not there: no ETag is empty. */
const absent = '';

/**
 * Both times are told in whole seconds, cut off or rounded. So their difference may exceed the time
 * that has passed by this much.
 */
const coarseMs = 2_000;

/** Shared by all elections of one backend. */
export interface Shared {
  readonly objects: Objects;
  readonly proof: Proof;
  readonly bucket: string;
  readonly clockStepMs: number | undefined;
}

/**
 * One election is one object, and its version is the ETag. It is read by GET, and swapped by a
 * conditional PUT.
 */
export class S3Store implements LeaseStore {
  readonly clockStepMs?: number;
  readonly #shared: Shared;
  readonly #scope: Scope;
  readonly #key: string;
  readonly #known = new KnownRecord();

  constructor(shared: Shared, scope: Scope, key: string) {
    this.#shared = shared;
    this.#scope = scope;
    this.#key = key;
    if (shared.clockStepMs !== undefined) this.clockStepMs = shared.clockStepMs;
  }

  async read(signal: AbortSignal): Promise<Reading> {
    const found = await this.#shared.objects.get(this.#key, signal);
    if (found === undefined) return { record: undefined, version: absent };
    const record = this.#recordOf(found);
    const ageMs = this.clockStepMs === undefined ? undefined : ageOf(found);
    return { record, version: found.tag, ...(ageMs === undefined ? {} : { ageMs }) };
  }

  async swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    const form = await this.#form(signal);
    const condition: Condition = expected === absent ? 'absent' : { tag: String(expected), form };
    const text = stamped(encodeLeaseRecord(next), this.#scope.uniqueId());
    const result = await this.#shared.objects.put(this.#key, text, condition, signal);
    if (result.outcome !== 'ok') return { outcome: 'conflict' };
    this.#known.learn(result.tag, next);
    return { outcome: 'ok', version: result.tag };
  }

  async init(signal: AbortSignal): Promise<void> {
    await this.#form(signal);
  }

  #form(signal: AbortSignal): Promise<TagForm> {
    return this.#shared.proof.form(this.#scope.uniqueId, signal);
  }

  #recordOf({ text, tag }: Found): LeaseRecord {
    const where = locationOf(this.#shared.bucket, this.#key);
    return this.#known.at(tag, () => decodeRecordOf(this.#scope.election, text, where));
  }
}

/**
 * An ETag is a digest of the stored bytes. Two writes of one record would have the same ETag. A
 * write that was decided on the first would then be accepted on the second.
 */
function stamped(record: string, id: string): string {
  return `{"write":${JSON.stringify(id)},${record.slice(1)}`;
}

/** The beginning of every object of ours, also of one that is damaged behind it. */
export function looksLikeRecord(text: string): boolean {
  return text.startsWith('{"write":');
}

/** The least time since it was written, in ms, by the endpoint's clock. */
export function ageOf({
  writtenMs,
  sentMs,
}: Pick<Found, 'writtenMs' | 'sentMs'>): number | undefined {
  if (writtenMs === undefined || sentMs === undefined) return undefined;
  const ageMs = sentMs - writtenMs - coarseMs;
  return Number.isNaN(ageMs) ? undefined : Math.max(0, ageMs);
}
