/**
 * A lease as a node that is replaced on its version:
 *
 *     <root>/.leases/devices/3             our record. No record yet: version 0, without data
 *     <root>/.leases/devices/3/<id>.made   made with the first record, which names the id
 *
 * The second node does two things. A node that was deleted and made anew has low versions again, and
 * a write on an old reading could land there. So each write needs the node that belongs to what was
 * read. And a write that others wait for changes it, so they are not woken by renewals.
 *
 * Nothing is ephemeral: a session that is lost takes nothing along.
 */
import { setMaxListeners } from 'node:events';
import { RecordDamagedError, StoreUnsuitableError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { unlessAborted } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';
import { KnownRecord } from '../../mechanisms/lease/known-record.ts';
import { orItsFault } from '../../mechanisms/lease/read-all.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { decodeRecordOf, encodeLeaseRecord } from '../../record/lease-record.ts';
import { watchAgain } from '../watch-again.ts';
import type { NodeAcl, NodeContent, ZooKeeperClient } from './client.ts';
import { codeOf, refusalOf } from './client.ts';
import { storeError } from './errors.ts';
import { parentOf } from './node-format.ts';

/** How many requests are sent before the first one is answered. */
const readsAtOnce = 500;

/** How many nodes one request reads. Its answer must not be too large for the client. */
const readsInOne = 64;

/** Clients of servers that read one node in a request. */
const oneByOne = new WeakSet<ZooKeeperClient>();

/** Undefined: the node is not there. */
type Found = NodeContent | undefined;

export interface LeaseNode {
  readonly path: string;
  readonly acl: readonly NodeAcl[];
  /** Makes the nodes above it. */
  readonly create: boolean;
}

export class ZooKeeperLeaseStore implements LeaseStore {
  readonly #client: ZooKeeperClient;
  readonly #scope: Scope;
  readonly #node: LeaseNode;
  readonly #known = new KnownRecord();
  readonly #ends = new Set<() => void>();

  constructor(client: ZooKeeperClient, scope: Scope, node: LeaseNode) {
    this.#client = client;
    this.#scope = scope;
    this.#node = node;
  }

  async read(signal: AbortSignal): Promise<Reading> {
    return this.#readingOf(await this.#newest(signal));
  }

  /** All on one connection, which keeps the order: what was asked of the leader holds for them all. */
  static async readAll(
    stores: readonly ZooKeeperLeaseStore[],
    signal: AbortSignal,
  ): Promise<readonly (Reading | Error)[]> {
    const [first] = stores;
    if (first === undefined) return [];
    setMaxListeners(0, signal);
    const [, found] = await Promise.all([first.#sync(signal), first.#getAll(stores, signal)]);
    return Promise.all(stores.map((store, i) => orItsFault(() => store.#readingOf(found[i]))));
  }

  /** Of stores with the same client. */
  async #getAll(
    stores: readonly ZooKeeperLeaseStore[],
    signal: AbortSignal,
  ): Promise<readonly Found[]> {
    const client = this.#client;
    if (client.multiRead === undefined || oneByOne.has(client)) {
      return inParallel(stores, readsAtOnce, (store) => store.#get(signal));
    }
    try {
      const parts = Array.from({ length: Math.ceil(stores.length / readsInOne) }, (_, i) =>
        stores.slice(i * readsInOne, (i + 1) * readsInOne),
      );
      const found = await inParallel(parts, readsAtOnce, async (part) => {
        const reads = part.map((store) => ({ get: store.#node.path }));
        const { results = [] } = (await client.multiRead?.(reads, { signal })) ?? {};
        return part.map((store, i) => results[i]?.value ?? store.#missing(results[i]?.error));
      });
      return found.flat();
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'INVALID_ARGUMENT' && code !== 'UNIMPLEMENTED') {
        throw storeError(error, parentOf(this.#node.path));
      }
      oneByOne.add(client);
      return this.#getAll(stores, signal);
    }
  }

  async swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    signal.throwIfAborted();
    const [replaced, made] = String(expected).split('/');
    const id = made ?? this.#scope.uniqueId();
    const isNews = !this.#known.isRenewal(expected, next);
    const write = async () => {
      const data = `${prefix}${id}",${encodeLeaseRecord(next).slice(1)}`;
      const all = this.#client.transaction().set(this.#node.path, data, Number(replaced));
      const beside = this.#made(id);
      if (made === undefined) all.create(beside, '', { acl: this.#node.acl });
      else if (isNews) all.set(beside, '', -1);
      else all.check(beside);
      return all.commit({ signal });
    };
    try {
      const { results } = await write().catch(async (error: unknown) => {
        if (refusalOf(error)?.code !== 'NO_NODE' || made !== undefined) throw error;
        await this.init(signal);
        return write();
      });
      const version = versionOf(results[0]?.stat?.version ?? Number(replaced) + 1, id);
      this.#known.learn(version, next);
      return { outcome: 'ok', version };
    } catch (error) {
      const { index, code } = refusalOf(error) ?? {};
      if (code !== 'BAD_VERSION' && code !== 'NO_NODE') throw storeError(error, this.#node.path);
      // A node of that version is there, and may be another one than that which was read.
      if (index === 1) await this.#requireMade(id, signal);
      return { outcome: 'conflict' };
    }
  }

  watch(onHint: () => void): () => void {
    let seen = '';
    let id: string | undefined;
    const { path } = this.#node;
    const next = async (signal: AbortSignal, hint: () => void) => {
      const watched = await this.#client.watch(id === undefined ? path : this.#made(id), {
        signal,
      });
      try {
        const found = watched.value;
        if (id === undefined) {
          id = idIn(found);
          // From now on the node beside it tells.
          if (id !== undefined) return;
        }
        const now = `${id} ${found?.stat.mzxid}`;
        if (now !== seen) hint();
        seen = now;
        if (id !== undefined && found === undefined) {
          id = undefined;
          throw new Error(`${path} was deleted or made anew`);
        }
        await unlessAborted(watched.changed, signal);
      } finally {
        watched.cancel();
      }
    };
    const end = watchAgain(this.#scope, `watching ${path}`, next, onHint);
    this.#ends.add(end);
    return () => {
      this.#ends.delete(end);
      end();
    };
  }

  async init(signal: AbortSignal): Promise<void> {
    const { path, acl, create } = this.#node;
    try {
      if (create) await this.#client.ensurePath(path, { acl, signal });
      else await this.#client.create(path, '', { acl, signal });
    } catch (error) {
      if (codeOf(error) === 'NODE_EXISTS') return;
      if (codeOf(error) !== 'NO_NODE') throw storeError(error, path);
      throw new StoreUnsuitableError(
        `the node ${parentOf(path)} does not exist: create it, or leave \`create: false\` out`,
      );
    }
  }

  async close(): Promise<void> {
    for (const end of this.#ends) end();
    this.#ends.clear();
  }

  /** Otherwise every write would conflict, without a word. */
  async #requireMade(id: string, signal: AbortSignal): Promise<void> {
    const { path } = this.#node;
    if (idIn(await this.#newest(signal)) === id)
      throw new RecordDamagedError(path, `${this.#made(id)} is missing`);
  }

  /** The server asks the leader first, so the answer is not older than this call. */
  async #newest(signal: AbortSignal): Promise<Found> {
    const [, found] = await Promise.all([this.#sync(signal), this.#get(signal)]);
    return found;
  }

  async #sync(signal: AbortSignal): Promise<void> {
    try {
      await this.#client.sync(this.#node.path, { signal });
    } catch (error) {
      throw storeError(error, this.#node.path);
    }
  }

  async #get(signal: AbortSignal): Promise<Found> {
    try {
      return await this.#client.get(this.#node.path, { signal });
    } catch (error) {
      return this.#missing(error);
    }
  }

  #missing(error: unknown): undefined {
    if (codeOf(error) === 'NO_NODE') return undefined;
    throw storeError(error, this.#node.path);
  }

  #readingOf(found: Found): Reading {
    const { path } = this.#node;
    if (found === undefined || (isEmpty(found) && found.stat.version === 0)) {
      return { record: undefined, version: noRecord };
    }
    const id = idIn(found);
    if (id === undefined) throw new RecordDamagedError(path, 'its data is not ours');
    const version = versionOf(found.stat.version, id);
    const decode = () => decodeRecordOf(this.#scope.election, textOf(found), path);
    return { record: this.#known.at(version, decode), version };
  }

  #made(id: string): string {
    return `${this.#node.path}/${id}.made`;
  }
}

/** A node that was made and never written, or is still to be made. */
const noRecord = '0';

const prefix = '{"made":"';

function versionOf(version: number, id: string): string {
  return `${version}/${id}`;
}

function textOf({ data }: NodeContent): string {
  return Buffer.from(data ?? []).toString();
}

function isEmpty({ data }: NodeContent): boolean {
  return data === null || data.length === 0;
}

function idIn(found: Found): string | undefined {
  return found && /^\{"made":"([^"\\/]+)"/.exec(textOf(found))?.[1];
}
