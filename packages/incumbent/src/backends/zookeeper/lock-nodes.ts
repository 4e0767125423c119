import { StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { decodeQueueRecord, encodeQueueRecord, isQueueRecord } from '../../record/queue-record.ts';
import type { NodeContent, NodeStat, NodeWatch, ZooKeeperClient } from './client.ts';
import { codeOf } from './client.ts';
import { placeName } from './lock-session.ts';

/** Where the nodes of one election are. */
export interface LockPaths {
  /** The node whose data is our record. In the layout of Hadoop that is the election's own. */
  readonly record: string;
  readonly lock: string;
  /** Undefined: the layout has none. */
  readonly breadcrumb: string | undefined;
}

/** The node of the record, with its content. */
export interface Own {
  readonly record: QueueRecord | undefined;
  /** The last write was a clean end, and took the lock away in the same transaction. */
  readonly isLeft: boolean;
  /** The breadcrumb that belonged to the record when that was written without it. */
  readonly breadcrumb: bigint | undefined;
  readonly stat: NodeStat;
}

/** All nodes as they were together. */
export interface Picture {
  /** Undefined: there is no such node. */
  readonly own: Own | undefined;
  readonly breadcrumb: NodeContent | undefined;
  readonly lock: NodeContent | undefined;
}

const maxReads = 5;

/** The nodes of one election for a lock. */
export class LockNodes {
  readonly #client: ZooKeeperClient;
  /** The node of the record. */
  readonly path: string;
  readonly lockPath: string;
  readonly #breadcrumbPath: string | undefined;

  constructor(client: ZooKeeperClient, { record, lock, breadcrumb }: LockPaths) {
    this.#client = client;
    this.path = record;
    this.lockPath = lock;
    this.#breadcrumbPath = breadcrumb;
  }

  /** Nodes that name a leader are siblings, by whatever path the writer knows their parent. */
  nameHere(recorded: string): string {
    const { lockPath } = this;
    const prefix = lockPath.slice(0, lockPath.lastIndexOf('/'));
    return `${prefix}/${recorded.slice(recorded.lastIndexOf('/') + 1)}`;
  }

  /** The places in the queue: that of the lock's holder, if there is one. */
  names(lock: NodeContent | undefined): readonly string[] {
    return lock === undefined ? [] : [placeName(this.lockPath, lock.stat.czxid)];
  }

  lock(signal: AbortSignal): Promise<NodeContent | undefined> {
    return this.get(this.lockPath, signal);
  }

  /** @returns undefined when it is not there */
  async get(path: string, signal: AbortSignal): Promise<NodeContent | undefined> {
    try {
      return await this.#client.get(path, { signal });
    } catch (error) {
      if (codeOf(error) === 'NO_NODE') return undefined;
      throw error;
    }
  }

  async deleteLock({ stat }: NodeContent, signal: AbortSignal): Promise<void> {
    try {
      await this.#client.delete(this.lockPath, { version: stat.version, signal });
    } catch (error) {
      if (codeOf(error) !== 'NO_NODE') throw error;
    }
  }

  /**
   * Reads one node after the other, and reads again if one of ours has written meanwhile. The
   * breadcrumb comes before the lock: if the lock is the older one, the breadcrumb was
   * written under it.
   */
  async picture(signal: AbortSignal): Promise<Picture> {
    for (let reads = 0; reads < maxReads; reads += 1) {
      const [node, breadcrumb, lock, after] = await Promise.all([
        this.get(this.path, signal),
        this.#breadcrumb(signal),
        this.lock(signal),
        this.#client.stat(this.path, { signal }),
      ]);
      if (node?.stat.mzxid !== after.stat?.mzxid) continue;
      return { own: node === undefined ? undefined : this.ownOf(node), breadcrumb, lock };
    }
    throw new StoreUnavailableError(
      `the record in ${this.path} changed ${maxReads} times while it was read`,
    );
  }

  /** The nodes, and the next change of the record or the breadcrumb. */
  async watchPicture(signal: AbortSignal): Promise<NodeWatch<Picture>> {
    // All at once: a leader that is forced to go should hear of it before its lock is gone,
    // if it can.
    const [own, breadcrumb, read] = await Promise.allSettled([
      this.#client.watch(this.path, { signal }),
      this.#watchBreadcrumb(signal),
      this.picture(signal),
    ]);
    const watches = [own, breadcrumb].flatMap((watch) =>
      watch.status === 'fulfilled' && watch.value !== undefined ? [watch.value] : [],
    );
    const cancel = () => {
      for (const watch of watches) watch.cancel();
    };
    try {
      for (const each of [own, breadcrumb, read]) {
        if (each.status === 'rejected') throw each.reason;
      }
      let picture = (read as PromiseFulfilledResult<Picture>).value;
      const [seen, crumb] = watches.map(({ value }) => value?.stat.mzxid);
      // A node that is not there is watched by a second request, after the others.
      if (picture.own?.stat.mzxid !== seen || picture.breadcrumb?.stat.mzxid !== crumb) {
        picture = await this.picture(signal);
      }
      const changed = Promise.race(watches.map((watch) => watch.changed));
      return { value: picture, changed, cancel };
    } catch (error) {
      cancel();
      throw error;
    }
  }

  ownOf({ data, stat }: NodeContent): Own {
    const text = Buffer.from(data ?? []).toString('utf8');
    const nothing = { record: undefined, isLeft: false, breadcrumb: undefined };
    if (text === '') return { ...nothing, stat };
    if (!isQueueRecord(text)) {
      throw new StoreUnsuitableError(
        `the node ${this.path} holds data that is not ours, and no member of such an election leaves ` +
          'any there: say the path that the other members use, or empty the node',
      );
    }
    const record = decodeQueueRecord(text, this.path);
    const { breadcrumb, left } = JSON.parse(text) as { breadcrumb?: unknown; left?: unknown };
    const isNumber = typeof breadcrumb === 'string' && /^\d+$/.test(breadcrumb);
    return {
      record,
      isLeft: left === true,
      breadcrumb: isNumber ? BigInt(breadcrumb) : undefined,
      stat,
    };
  }

  async #breadcrumb(signal: AbortSignal): Promise<NodeContent | undefined> {
    const path = this.#breadcrumbPath;
    return path === undefined ? undefined : this.get(path, signal);
  }

  async #watchBreadcrumb(
    signal: AbortSignal,
  ): Promise<NodeWatch<NodeContent | undefined> | undefined> {
    const path = this.#breadcrumbPath;
    return path === undefined ? undefined : this.#client.watch(path, { signal });
  }
}

/**
 * True when the breadcrumb is of the leader that the record names, or named when it was written.
 */
export function isWrittenWith(own: Own | undefined, { stat }: NodeContent): boolean {
  return own?.stat.mzxid === stat.mzxid || own?.breadcrumb === stat.mzxid;
}

/** The data of the record's node. */
export function encode(record: QueueRecord, breadcrumb: bigint | undefined): string {
  const text = encodeQueueRecord(record);
  return breadcrumb === undefined ? text : `${text.slice(0, -1)},"breadcrumb":"${breadcrumb}"}`;
}

/** The same, of a clean end that takes the lock away in the same transaction. */
export function encodeLeft(record: QueueRecord): string {
  return `${encodeQueueRecord(record).slice(0, -1)},"left":true}`;
}
