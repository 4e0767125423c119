/**
 * A lease as a key that is replaced on its revision. No revision of a cluster comes again, so a key
 * that was deleted and put again is another version. It is on no lease of etcd: nothing expires.
 */
import { unlessAborted } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';
import { KnownRecord } from '../../mechanisms/lease/known-record.ts';
import { orItsFault } from '../../mechanisms/lease/read-all.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { decodeRecordOf, encodeLeaseRecord } from '../../record/lease-record.ts';
import { watchAgain } from '../watch-again.ts';
import { codeOf, grpcCode } from './client.ts';
import type { leaseKeys } from './keys.ts';
import { encodeKey } from './keys.ts';
import type { KeyValue, RangeRequest } from './messages.ts';
import type { EtcdSession } from './session.ts';
import { isAtVersion } from './session.ts';

/** The value that etcd compares with where no key is. */
const absent = 0n;
/** Servers take 128 operations in a transaction, unless they were told otherwise. */
const rangesAtOnce = 100;

const text = new TextDecoder();

export class EtcdLeaseStore implements LeaseStore {
  readonly #session: EtcdSession;
  readonly #scope: Scope;
  readonly #keys: ReturnType<typeof leaseKeys>;
  readonly #known = new KnownRecord();
  readonly #ends = new Set<() => void>();

  constructor(session: EtcdSession, scope: Scope, keys: ReturnType<typeof leaseKeys>) {
    this.#session = session;
    this.#scope = scope;
    this.#keys = keys;
  }

  async read(signal: AbortSignal): Promise<Reading> {
    const key = encodeKey(this.#keys.record);
    const { kvs } = await this.#session.read({ key }, 'reading a lease', signal);
    return this.#readingOf(kvs[0]);
  }

  /** One request. Leases of one prefix are one range of it. */
  static async readAll(
    stores: readonly EtcdLeaseStore[],
    signal: AbortSignal,
  ): Promise<readonly (Reading | Error)[]> {
    const [first] = stores;
    if (first === undefined) return [];
    const ranges = rangesOf(stores.map((store) => store.#keys.record));
    try {
      const kvs = await first.#kvs(ranges, signal);
      const found = new Map(kvs.map((kv) => [latin1(kv.key), kv]));
      const readings = stores.map((store) => {
        const kv = found.get(latin1(encodeKey(store.#keys.record)));
        return orItsFault(() => store.#readingOf(kv));
      });
      return await Promise.all(readings);
    } catch (error) {
      // More than a client takes in one answer, or a server in one transaction.
      const code = codeOf((error as Error).cause);
      const isTooMuch = ranges.length > rangesAtOnce || code === grpcCode.resourceExhausted;
      if (!isTooMuch || stores.length === 1) throw error;
    }
    const middle = Math.ceil(stores.length / 2);
    const halves = [stores.slice(0, middle), stores.slice(middle)];
    const read = await Promise.all(halves.map((half) => EtcdLeaseStore.readAll(half, signal)));
    return read.flat();
  }

  /** With a put in it, the transaction is decided by a quorum, also when it puts nothing. */
  async swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    const { record, news } = this.#keys;
    const put = (key: string, value: string) => ({
      put: { key: encodeKey(key), value: encodeKey(value) },
    });
    const isRenewal = this.#known.isRenewal(expected, next);
    const { header, succeeded } = await this.#session.txn(
      {
        compare: [isAtVersion(record, expected as bigint)],
        success: [put(record, encodeLeaseRecord(next)), ...(isRenewal ? [] : [put(news, '')])],
        failure: [],
      },
      'writing a lease',
      signal,
      // The belief of its holder depends on it.
      { isUrgent: true },
    );
    if (!succeeded) return { outcome: 'conflict' };
    this.#known.learn(header.revision, next);
    return { outcome: 'ok', version: header.revision };
  }

  watch(onHint: () => void): () => void {
    const key = encodeKey(this.#keys.news);
    let after: bigint | undefined;
    const next = async (signal: AbortSignal, hint: () => void) => {
      if (after === undefined) {
        const request = { key, keysOnly: true };
        after = (await this.#session.read(request, 'watching a lease', signal)).header.revision;
        hint();
      }
      const watched = this.#session.watches.first({ key, startRevision: after + 1n });
      try {
        const events = await unlessAborted(watched.events, signal);
        // Undefined: the history is not to be had, so there may be news.
        after = events?.at(-1)?.kv.modRevision;
        if (after !== undefined) hint();
      } finally {
        watched.cancel();
      }
    };
    const end = watchAgain(this.#scope, `watching ${this.#keys.news}`, next, onHint);
    this.#ends.add(end);
    return () => {
      this.#ends.delete(end);
      end();
    };
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end();
    this.#ends.clear();
  }

  /** Of one revision. */
  async #kvs(
    ranges: readonly Partial<RangeRequest>[],
    signal: AbortSignal,
  ): Promise<readonly KeyValue[]> {
    const what = 'reading leases';
    const [range = {}] = ranges;
    if (ranges.length === 1) return (await this.#session.read(range, what, signal)).kvs;
    if (ranges.length > rangesAtOnce) throw new RangeError(`${ranges.length} ranges at once`);
    const request = { compare: [], success: ranges.map((each) => ({ range: each })), failure: [] };
    const { responses } = await this.#session.txn(request, what, signal, { mayRepeat: true });
    return responses.flatMap((response) => response.range?.kvs ?? []);
  }

  #readingOf(kv: KeyValue | undefined): Reading {
    if (kv === undefined) return { record: undefined, version: absent };
    const { election } = this.#scope;
    const decode = () => decodeRecordOf(election, text.decode(kv.value), this.#keys.record);
    return { record: this.#known.at(kv.modRevision, decode), version: kv.modRevision };
  }
}

/** Keys with a common prefix up to the last slash are one range, from the first one to the last. */
function rangesOf(names: readonly string[]): readonly Partial<RangeRequest>[] {
  const groups = new Map<string, Uint8Array[]>();
  for (const name of new Set(names)) {
    const prefix = name.slice(0, name.lastIndexOf('/'));
    const group = groups.get(prefix);
    if (group === undefined) groups.set(prefix, [encodeKey(name)]);
    else group.push(encodeKey(name));
  }
  return [...groups.values()].map((keys) => {
    const [key, ...others] = keys.sort(Buffer.compare) as [Uint8Array, ...Uint8Array[]];
    const last = others.at(-1);
    return last === undefined ? { key } : { key, rangeEnd: Uint8Array.from([...last, 0]) };
  });
}

function latin1(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1');
}
