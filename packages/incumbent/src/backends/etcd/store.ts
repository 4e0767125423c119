import { setMaxListeners } from 'node:events';
import { isIncurable, RecordDamagedError, StoreUnavailableError } from '../../base/errors.ts';
import { sleep } from '../../base/wait.ts';
import { lastPlaceIn } from '../../mechanisms/queue/named-places.ts';
import type {
  Amendment,
  CommitResult,
  Entry,
  Member,
  Place,
  QueueStore,
  RecordReading,
  Version,
  Watched,
} from '../../mechanisms/queue/store.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { decodeQueueRecord, encodeQueueRecord, isQueueRecord } from '../../record/queue-record.ts';
import { codeOf, grpcCode } from './client.ts';
import { nobodyBetween } from './history.ts';
import type { ElectionKeys } from './keys.ts';
import {
  decodeCandidate,
  encodeCandidate,
  encodeKey,
  nameBelow,
  nameOf,
  parsePlace,
  placeKey,
  placeName,
} from './keys.ts';
import type { Lease } from './leases.ts';
import type { KeyValue, RangeResponse, RequestOp, TxnResponse } from './messages.ts';
import { sortOrder, sortTarget, watchFilter } from './messages.ts';
import type { EtcdPlace, EtcdSession } from './session.ts';
import { isAtVersion, isThere } from './session.ts';
import type { WatchSpec } from './watches.ts';

/** Servers take 128 operations in a transaction, unless they were told otherwise. */
const removedAtOnce = 100;

/** The pause between two attempts to look for a place that may have been made. */
const latePutPauseMs = 1_000;

const never = new AbortController().signal;
// One signal for all late puts. Node would warn at the eleventh listener.
setMaxListeners(0, never);
const text = new TextDecoder();

const inOrder = { sortOrder: sortOrder.ascend, sortTarget: sortTarget.create } as const;
const lastFirst = { sortOrder: sortOrder.descend, sortTarget: sortTarget.create } as const;

/** The lease on which an entry is put, and whether that put may still land. */
interface EntryPut {
  readonly lease: Lease;
  /** True: an attempt had no answer. Its put may land at any time, as long as the lease lives. */
  isUnsure: boolean;
}

/** One election as the keys below a prefix, with the record beside it. */
export class EtcdStore implements QueueStore {
  readonly session: EtcdSession;
  /** Go programs and `etcdctl elect` write no record, and wait for no belief. */
  readonly isMixed = true;
  readonly #keys: ElectionKeys;
  readonly #stopUsing: () => void;
  /** By the guid of the entry. */
  readonly #entryPuts: Map<string, EntryPut> = new Map();
  /** By name: the places of this store that are not given up. */
  readonly #places: Map<string, EtcdPlace> = new Map();
  /** A proof from the history: no candidate led between these two. */
  #proved: { readonly place: string; readonly previous: string } | undefined;

  constructor(session: EtcdSession, keys: ElectionKeys) {
    this.session = session;
    this.#keys = keys;
    this.#stopUsing = session.use();
  }

  nameHere(recorded: string): string {
    return nameBelow(this.#keys.prefix, recorded);
  }

  // --- places ---

  async enter(entry: Entry, signal: AbortSignal): Promise<Place> {
    const { prefix } = this.#keys;
    this.#forgetDead();
    const before = this.#entryPuts.get(entry.guid);
    const lease =
      before !== undefined
        ? before.lease
        : await this.session.attempt('granting a lease', () =>
            this.session.leases.take(prefix, entry.guid, signal),
          );
    const entryPut = before?.lease === lease ? before : { lease, isUnsure: false };
    this.#entryPuts.set(entry.guid, entryPut);
    const key = placeKey(prefix, lease.id);
    let response = await this.#put(entryPut, key, entry, signal);
    const leftBehind = this.#leftBehind(response, key, entryPut, entry.guid);
    if (leftBehind !== undefined) {
      await this.remove(leftBehind, signal);
      response = await this.#put(entryPut, key, entry, signal);
    }
    const place = this.#placeFrom(response, key, lease, entry.guid);
    this.#places.set(place.name, place);
    return place;
  }

  async #put(
    entryPut: EntryPut,
    key: string,
    entry: Entry,
    signal: AbortSignal,
  ): Promise<TxnResponse> {
    const { lease, isUnsure } = entryPut;
    // Unsure until an answer comes. An earlier attempt may land even later.
    entryPut.isUnsure = true;
    try {
      const response = await this.session.txn(
        {
          // The key was not put since it was last deleted.
          compare: [isThere({ key, token: 0n })],
          success: [
            { put: { key: encodeKey(key), value: encodeCandidate(entry), lease: lease.id } },
            // The place directly before us, at this very revision.
            { range: { ...this.#keys.range, ...lastFirst, keysOnly: true, limit: 2n } },
          ],
          failure: [{ range: { key: encodeKey(key) } }],
        },
        'entering',
        signal,
      );
      entryPut.isUnsure = isUnsure;
      return response;
    } catch (error) {
      // The error is the caller's reason, whatever that is, and says nothing of the put.
      if (signal.aborted) throw error;
      if (codeOf((error as Error).cause) === grpcCode.notFound) {
        this.session.leases.lost(lease);
      } else if (isIncurable(error)) {
        entryPut.isUnsure = isUnsure;
      }
      throw error;
    }
  }

  /**
   * The slot is ours, but an earlier entry of ours is on our lease, as after a cluster was restored
   * from a copy. It would stay for as long as we keep the lease, so we remove it.
   */
  #leftBehind(
    response: TxnResponse,
    key: string,
    entryPut: EntryPut,
    guid: string,
  ): string | undefined {
    const found = response.succeeded ? undefined : response.responses[0]?.range?.kvs[0];
    if (found === undefined || found.lease !== entryPut.lease.id) return undefined;
    const theirs = decodeCandidate(key, found.value).guid;
    if (theirs === undefined || theirs === guid) return undefined;
    return placeName(key, found.createRevision);
  }

  #placeFrom(response: TxnResponse, key: string, lease: Lease, guid: string): EtcdPlace {
    const { header, succeeded, responses } = response;
    const place = (token: bigint, before: string | undefined): EtcdPlace => {
      return { name: placeName(key, token), key, token, session: lease, guid, before };
    };
    if (succeeded) {
      const [, last] = responses[1]?.range?.kvs ?? [];
      const before = last === undefined ? '' : nameOf(this.#keys.prefix, last);
      return place(header.revision, before);
    }
    // An earlier attempt has made it, and its answer was lost.
    const found = responses[0]?.range?.kvs[0];
    if (found !== undefined && decodeCandidate(key, found.value).guid === guid) {
      return place(found.createRevision, undefined);
    }
    // The slot stays taken. The next attempt is made on another lease.
    lease.slots.set(this.#keys.prefix, 'somebody else');
    this.#entryPuts.delete(guid);
    throw new StoreUnavailableError(`etcd: ${key} has been put by somebody else`);
  }

  async leave(entry: Entry, place: Place | undefined, signal: AbortSignal): Promise<void> {
    const entryPut = this.#entryPuts.get(entry.guid);
    if (place !== undefined) {
      await this.remove(place.name, signal);
    } else if (entryPut !== undefined && !entryPut.lease.group.isOver) {
      const key = placeKey(this.#keys.prefix, entryPut.lease.id);
      const { kvs } = await this.session.read(
        { key: encodeKey(key) },
        'looking for a place',
        signal,
      );
      const [found] = kvs;
      if (found !== undefined && decodeCandidate(key, found.value).guid === entry.guid) {
        await this.remove(placeName(key, found.createRevision), signal);
      }
    }
    this.#forget(entry.guid, place);
  }

  async remove(name: string, signal: AbortSignal): Promise<void> {
    const place = parsePlace(name);
    if (place === undefined) return;
    const { key, createRevision: token } = place;
    await this.session.txn(
      {
        compare: [isThere({ key, token })],
        success: [{ deleteRange: { key: encodeKey(key) } }],
        failure: [],
      },
      'deleting a place',
      signal,
      // Deletes this creation only, which never comes again.
      { mayRepeat: true },
    );
  }

  async list(signal: AbortSignal): Promise<readonly string[]> {
    const request = { ...this.#keys.range, ...inOrder, keysOnly: true };
    return this.#names(await this.session.read(request, 'listing', signal));
  }

  async members(signal: AbortSignal, most?: number): Promise<readonly Member[]> {
    // Keys of elections below this one may be among them, so the server gets no limit.
    const { kvs } = await this.session.read({ ...this.#keys.range, ...inOrder }, 'listing', signal);
    return membersOf(this.#keys, kvs, most);
  }

  async watchPlace(name: string, signal: AbortSignal): Promise<Watched<boolean>> {
    const place = parsePlace(name);
    if (place === undefined) return { value: false, changed: Promise.resolve(), cancel: () => {} };
    const key = encodeKey(place.key);
    const { header, kvs } = await this.session.read({ key, keysOnly: true }, 'watching', signal);
    const value = kvs[0]?.createRevision === place.createRevision;
    // Another program's leader may proclaim values there. They are none of our business.
    const filters = [watchFilter.noPut];
    return this.#watched(value, { key, filters, startRevision: header.revision + 1n });
  }

  async watchList(signal: AbortSignal): Promise<Watched<readonly string[]>> {
    const request = { ...this.#keys.range, ...inOrder, keysOnly: true };
    const found = await this.session.read(request, 'watching', signal);
    const startRevision = found.header.revision + 1n;
    return this.#watched(this.#names(found), { ...this.#keys.range, startRevision });
  }

  directlyFollows(place: Place, previous: string): boolean {
    if ((place as EtcdPlace).before === previous) return true;
    return this.#proved?.place === place.name && this.#proved.previous === previous;
  }

  // --- the record ---

  async read(signal: AbortSignal): Promise<RecordReading> {
    const key = encodeKey(this.#keys.record);
    const { kvs } = await this.session.read({ key }, 'reading', signal);
    return this.#reading(kvs[0]);
  }

  async look(
    signal: AbortSignal,
  ): Promise<{ readonly reading: RecordReading; readonly names: readonly string[] }> {
    // Both are of one revision: a leader that the record names and the list lacks is gone.
    const { responses } = await this.session.txn(
      {
        compare: [],
        success: [
          { range: { key: encodeKey(this.#keys.record) } },
          { range: { ...this.#keys.range, ...inOrder, keysOnly: true } },
        ],
        failure: [],
      },
      'looking',
      signal,
      { mayRepeat: true },
    );
    const reading = this.#reading(responses[0]?.range?.kvs[0]);
    const names = this.#names(responses[1]?.range);
    await this.#study(reading, names[0], signal);
    return { reading, names };
  }

  async watchRecord(signal: AbortSignal): Promise<Watched<RecordReading>> {
    const key = encodeKey(this.#keys.record);
    const { header, kvs } = await this.session.read({ key }, 'watching', signal);
    const startRevision = header.revision + 1n;
    return this.#watched(this.#reading(kvs[0]), { key, startRevision });
  }

  /** All reads here are linearizable. */
  async sync(): Promise<void> {}

  async commit(
    place: Place,
    record: QueueRecord,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    const known = place as EtcdPlace;
    this.session.requireFresh([known]);
    return this.#write([known], [], record, version, signal);
  }

  async release(
    place: Place,
    record: QueueRecord | undefined,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    const known = place as EtcdPlace;
    if (record === undefined) {
      await this.remove(place.name, signal);
      this.#forget(known.guid, place);
      return { outcome: 'ok', version };
    }
    const result = await this.#write([known], [known], record, version, signal);
    if (result.outcome !== 'conflict') this.#forget(known.guid, place);
    return result;
  }

  /**
   * Atomic for the first hundred places that are removed, which is what servers take. The others
   * follow one by one. By then the record says why.
   */
  async amend(change: Amendment, signal: AbortSignal): Promise<CommitResult> {
    const { record, version, present, remove = [] } = change;
    const [atOnce, later] = [remove.slice(0, removedAtOnce), remove.slice(removedAtOnce)];
    const removed = atOnce.map(placeOf);
    const checked = present === undefined ? removed : [...removed, placeOf(present)];
    const result = await this.#write(checked, removed, record, version, signal);
    if (result.outcome === 'ok') for (const name of later) await this.remove(name, signal);
    return result;
  }

  /** Nothing has to be there first. */
  async init(): Promise<void> {}

  async close(): Promise<void> {
    this.#stopUsing();
  }

  // --- helpers ---

  async #write(
    checked: readonly { readonly key: string; readonly token: bigint }[],
    removed: readonly { readonly key: string }[],
    record: QueueRecord,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    const recordKey = encodeKey(this.#keys.record);
    const look = (key: string): Partial<RequestOp> => ({
      range: { key: encodeKey(key), keysOnly: true },
    });
    const { header, succeeded, responses } = await this.session.txn(
      {
        compare: [...checked.map(isThere), isAtVersion(this.#keys.record, version as bigint)],
        success: [
          { put: { key: recordKey, value: encodeKey(encodeQueueRecord(record)) } },
          ...removed.map(({ key }) => ({ deleteRange: { key: encodeKey(key) } })),
        ],
        failure: checked.map(({ key }) => look(key)),
      },
      'writing the record',
      signal,
    );
    if (succeeded) return { outcome: 'ok', version: header.revision };
    const isGone = checked.some(
      ({ token }, index) => responses[index]?.range?.kvs[0]?.createRevision !== token,
    );
    return { outcome: isGone ? 'gone' : 'conflict' };
  }

  #reading(kv: KeyValue | undefined): RecordReading {
    return readingOf(this.#keys, kv);
  }

  #names(response: RangeResponse | undefined): readonly string[] {
    const names: string[] = [];
    for (const kv of response?.kvs ?? []) {
      const name = nameOf(this.#keys.prefix, kv);
      if (name !== undefined) names.push(name);
    }
    return names;
  }

  #watched<Value>(value: Value, spec: WatchSpec): Watched<Value> {
    const { events: changed, cancel } = this.session.watches.first(spec);
    return { value, changed, cancel };
  }

  /**
   * Finds out whether a member that writes no record can have led before us, where that matters.
   */
  async #study(reading: RecordReading, first: string | undefined, signal: AbortSignal) {
    const { record, version } = reading;
    const place = first === undefined ? undefined : this.#places.get(first);
    if (place === undefined || record === undefined || record.holding !== undefined) return;
    const previous = lastPlaceIn(this, record);
    if (previous === undefined || this.directlyFollows(place, previous)) return;
    const isProved = await nobodyBetween(this.session, this.#keys, {
      previous,
      recordRevision: version as bigint,
      createRevision: place.token,
      signal,
    });
    if (isProved) this.#proved = { place: place.name, previous };
  }

  #forget(guid: string, place: Place | undefined): void {
    if (place !== undefined) this.#places.delete(place.name);
    const entryPut = this.#entryPuts.get(guid);
    if (entryPut === undefined) return;
    this.#entryPuts.delete(guid);
    const { lease, isUnsure } = entryPut;
    if (lease.group.isOver) return;
    if (isUnsure) void this.#removeLatePut(lease, guid);
    else this.session.leases.free(lease, this.#keys.prefix);
  }

  /** Forgets places whose lease is over: they need not be given up. */
  #forgetDead(): void {
    for (const [guid, { lease }] of this.#entryPuts) {
      if (lease.group.isOver) this.#entryPuts.delete(guid);
    }
    for (const [name, { session }] of this.#places) {
      if (session.group.isOver) this.#places.delete(name);
    }
  }

  /**
   * A put without an answer may land after we have given up. The place would then block all others,
   * and no candidate would know of it. So we wait for it as long as the lease lives. The lease is
   * given up with its last key.
   */
  async #removeLatePut(lease: Lease, guid: string): Promise<void> {
    const name = placeKey(this.#keys.prefix, lease.id);
    const key = encodeKey(name);
    const { leases, watches, clock } = this.session;
    leases.withhold(lease, this.#keys.prefix);
    while (!lease.group.isOver) {
      try {
        const { header, kvs } = await this.session.read({ key }, 'looking for a place', never);
        const [found] = kvs;
        if (found !== undefined && decodeCandidate(name, found.value).guid === guid) {
          await this.remove(placeName(name, found.createRevision), never);
        }
        const filters = [watchFilter.noDelete];
        const put = watches.first({ key, filters, startRevision: header.revision + 1n });
        await firstOf(put.events, leases.whenOver(lease));
        put.cancel();
      } catch {
        await sleep(clock, latePutPauseMs, never, true);
      }
    }
  }
}

/** @throws RecordDamagedError, RecordTooNewError */
export function readingOf(
  { record: location }: ElectionKeys,
  kv: KeyValue | undefined,
): RecordReading {
  // 0 is the value that etcd compares with where no key is.
  if (kv === undefined) return { record: undefined, version: 0n };
  const json = text.decode(kv.value);
  if (!isQueueRecord(json)) throw new RecordDamagedError(location, 'its value is not ours');
  return { record: decodeQueueRecord(json, location), version: kv.modRevision };
}

/** @param kvs keys below the prefix of the election, in the order of their creation */
export function membersOf(
  { prefix }: ElectionKeys,
  kvs: readonly KeyValue[],
  most?: number,
): readonly Member[] {
  const members: Member[] = [];
  for (const kv of kvs) {
    if (members.length === most) break;
    const name = nameOf(prefix, kv);
    if (name === undefined) continue;
    const { candidate, guid } = decodeCandidate(name, kv.value);
    members.push({ name, token: kv.createRevision, candidate, isOurs: guid !== undefined });
  }
  return members;
}

function placeOf(name: string): { readonly key: string; readonly token: bigint } {
  const { key, createRevision } = parsePlace(name) ?? { key: name, createRevision: -1n };
  return { key, token: createRevision };
}

async function firstOf(...promises: readonly Promise<unknown>[]): Promise<void> {
  await Promise.race(promises);
}
