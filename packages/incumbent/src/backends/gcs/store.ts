import { readClocks } from '../../base/clock.ts';
import { RefusedError, StoreUnavailableError } from '../../base/errors.ts';
import type { Scope } from '../../core/contest.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import type { ObjectMetadata, StorageLike } from './client.ts';
import type { EntryFormat, Sending } from './entry-format.ts';
import { entryOfRecord, isForeign, ourRecord, recordOfEntry } from './entry-format.ts';
import type { Refusals, Verb } from './errors.ts';
import { isConflict } from './errors.ts';
import type { Answer, StoredObject } from './object-calls.ts';
import { ObjectCalls } from './object-calls.ts';
import type { CheckedOptions } from './options.ts';
import { defaultClockStepMs } from './options.ts';
import type { RaceEntry } from './race-entry.ts';
import { decodeEntry, encodeEntry, sameEntry } from './race-entry.ts';
import { StoreClock } from './store-clock.ts';

/** The version of an object that is not there, and what Cloud Storage calls its generation. */
const absent = '0';
/** Both times of an answer are whole seconds, so an age is told too low rather than too high. */
const ageResolutionMs = 2_000;
/**
 * Versions of one election that are remembered. An older one is read again. There may be
 * a thousand elections.
 */
const mostRemembered = 2;

/** The content of one version of the object. */
interface Seen {
  readonly entry: RaceEntry;
  readonly record: LeaseRecord;
  /** True: a Go program's term that was over, by the store's clock, when this was read. */
  readonly isOver: boolean;
}

/** Shared by all elections of one backend. */
export interface Shared {
  readonly storage: StorageLike;
  readonly options: CheckedOptions;
  readonly refusals: Refusals;
}

/**
 * One election is one object. Its version is the generation with the metageneration: a change of
 * the object's metadata also changes the store's time of writing.
 */
export class GcsStore implements LeaseStore {
  readonly objectName: string;
  readonly clockStepMs?: number;
  readonly #shared: Shared;
  readonly #scope: Scope;
  readonly #calls: ObjectCalls;
  readonly #format: EntryFormat;
  readonly #storeClock: StoreClock;
  readonly #seen = new Map<Version, Seen>();
  #hasAskedForAge = false;

  constructor(shared: Shared, scope: Scope, objectName: string) {
    const { storage, options } = shared;
    const { timing } = scope;
    this.objectName = objectName;
    if (options.clockStepMs !== undefined) this.clockStepMs = options.clockStepMs;
    this.#shared = shared;
    this.#scope = scope;
    this.#calls = new ObjectCalls(storage, options.bucket, objectName, timing.operationTimeoutMs);
    this.#format = {
      election: scope.election,
      location: `gs://${options.bucket}/${objectName}`,
      maxClockSkewMs: options.maxClockSkewMs,
      clockDrift: timing.clockDrift,
    };
    this.#storeClock = new StoreClock(timing.clockDrift, options.maxClockSkewMs, (error) =>
      scope.onTrouble('comparing clocks', error),
    );
  }

  async read(signal: AbortSignal): Promise<Reading> {
    const { value: object, dateMs } = await this.#call('read', signal, () =>
      this.#calls.read(signal),
    );
    if (object === undefined) return { record: undefined, version: absent };
    const entry = decodeEntry(object.bytes, this.#format.location);
    const writtenUnixMs = await this.#writtenUnixMs(object, entry, signal);
    const version = versionOf(object.generation, object.metageneration);
    const record = recordOfEntry(entry, { version, writtenUnixMs }, this.#format);
    const ageMs = ageOf(writtenUnixMs, dateMs);
    this.#remember(version, { entry, record, isOver: isTermOver(record, ageMs, this.clockStepMs) });
    const isTold = ageMs !== undefined && this.clockStepMs !== undefined;
    return { record, version, ...(isTold ? { ageMs } : {}) };
  }

  async swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    const base = await this.#seenAs(expected, signal);
    if (base === 'another') return { outcome: 'conflict' };
    const record = base === undefined ? next : besideForeigners(base, next);
    const entry = entryOfRecord(base, record, this.#sending());
    const bytes = this.#encode(entry);
    let metadata: ObjectMetadata;
    try {
      const { acl } = this.#shared.options;
      const answer = await this.#call('write', signal, () =>
        this.#calls.write(bytes, generationOf(expected), acl, signal),
      );
      metadata = answer.value;
    } catch (error) {
      if (error === conflict) return { outcome: 'conflict' };
      throw error;
    }
    const { generation, metageneration = 1 } = metadata;
    if (generation === undefined) {
      throw new StoreUnavailableError(`the generation of ${this.#format.location} was not told`);
    }
    const version = versionOf(generation, metageneration);
    this.#remember(version, { entry, record, isOver: false });
    return { outcome: 'ok', version };
  }

  /**
   * Belief counts from before now, and is over H later by a clock that may be slow. A Go
   * program may take the seat when its own clock passes the written time. That clock may be
   * ahead of the store's.
   */
  #sending(): Sending {
    const { clock, timing } = this.#scope;
    const now = readClocks(clock);
    const { beliefMs, clockDrift } = timing;
    const longestBeliefMs = (beliefMs * (1 + clockDrift)) / (1 - clockDrift);
    const storeMs = this.#storeClock.latestMs(now) ?? now.wallMs;
    return {
      wallMs: now.wallMs,
      storeMs,
      believedUntilMs: storeMs + longestBeliefMs + this.#format.maxClockSkewMs,
    };
  }

  #encode(entry: RaceEntry): Uint8Array {
    const bytes = encodeEntry(entry);
    if (sameEntry(decodeEntry(bytes, this.#format.location), entry)) return bytes;
    throw new StoreUnavailableError(
      `what was to be written to ${this.#format.location} does not read as what was meant: is the ` +
        'memory of this machine sound?',
    );
  }

  async #call<T>(
    verb: Verb,
    signal: AbortSignal,
    call: () => Promise<Answer<T>>,
  ): Promise<Answer<T>> {
    const { clock } = this.#scope;
    const sent = readClocks(clock);
    try {
      const answer = await call();
      this.#shared.refusals.allowed(verb);
      this.#storeClock.see(sent, clock.wallMs(), answer.dateMs);
      return answer;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (verb === 'write' && isConflict(error)) throw conflict;
      throw this.#shared.refusals.error(verb, error);
    }
  }

  /**
   * The time of writing, by the store's clock. Where the answer lacks it, the store is asked if it
   * matters. It matters for an entry of a Go program, and for the first record that is seen.
   */
  async #writtenUnixMs(
    object: StoredObject,
    entry: RaceEntry,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    if (object.writtenUnixMs !== undefined) return object.writtenUnixMs;
    const isForeign = ourRecord(entry, this.#format) === undefined;
    if (!isForeign && (this.#hasAskedForAge || this.clockStepMs === undefined)) return undefined;
    this.#hasAskedForAge = true;
    const asked = await this.#call('read', signal, async () => ({
      value: await this.#calls.metadata(signal),
      dateMs: undefined,
    }));
    const { generation, metageneration = 1, updated } = asked.value;
    const isSame =
      String(generation) === object.generation && String(metageneration) === object.metageneration;
    if (isSame) {
      const ms = Date.parse(updated ?? '');
      return Number.isFinite(ms) ? ms : undefined;
    }
    if (!isForeign) return undefined;
    throw new StoreUnavailableError(`${this.#format.location} was replaced while it was read`);
  }

  /** Undefined: there is no object. `another`: the object has another version now. */
  async #seenAs(version: Version, signal: AbortSignal): Promise<Seen | undefined | 'another'> {
    signal.throwIfAborted();
    if (version === absent) return undefined;
    const seen = this.#seen.get(version);
    if (seen !== undefined) return seen;
    const reading = await this.read(signal);
    if (generationOf(reading.version) !== generationOf(version)) return 'another';
    return this.#seen.get(reading.version);
  }

  #remember(version: Version, seen: Seen): void {
    this.#seen.delete(version);
    this.#seen.set(version, seen);
    for (const old of this.#seen.keys()) {
      if (this.#seen.size <= mostRemembered) break;
      this.#seen.delete(old);
    }
  }
}

/** Thrown within: the object was not in the state that the write demanded. */
const conflict: unique symbol = Symbol('conflict');

function versionOf(generation: string | number, metageneration: string | number): string {
  return `${generation}.${metageneration}`;
}

function generationOf(version: Version): string {
  return String(version).split('.')[0] as string;
}

function ageOf(writtenUnixMs: number | undefined, dateMs: number | undefined): number | undefined {
  if (writtenUnixMs === undefined || dateMs === undefined) return undefined;
  return Math.max(0, dateMs - writtenUnixMs - ageResolutionMs);
}

/**
 * True for a Go program's term that no program can believe in any more, by the store's own clock.
 */
function isTermOver(record: LeaseRecord, ageMs = 0, clockStepMs = defaultClockStepMs): boolean {
  return record.holding?.tokenless === true && ageMs - clockStepMs >= record.leaseMs;
}

/**
 * Operators' requests beside a Go program. It reads no requests, and any write of ours would end
 * its term: it could not confirm any more. Once its term is over, the seat is vacant. Before that,
 * the operator may say so, who knows that the program has ended.
 * @throws RefusedError
 */
function besideForeigners({ record, isOver }: Seen, next: LeaseRecord): LeaseRecord {
  const { holding } = record;
  if (holding === undefined || next.nonce !== record.nonce) return next;
  if (!isForeign(holding.candidate.incarnation)) return next;
  const { id } = holding.candidate;
  const isForced = next.holding?.revoked === true;
  if (!isOver && !isForced) {
    throw new RefusedError(
      `"${id}" leads, which is no candidate of incumbent and reads no requests, and anything that is ` +
        'written beside it would end its term: end that process, and ask again when its term is over, ' +
        'or vacate by force once it has certainly ended',
    );
  }
  if (next.holding?.request?.kind === 'transfer') {
    throw new RefusedError(
      `nobody leads election "${record.election}" since the term of "${id}" is over, so there is ` +
        `nothing to transfer to "${next.holding.request.to}"`,
    );
  }
  // The lease may be years long, and has no holder any more.
  return { ...next, leaseMs: 0, holding: undefined };
}
