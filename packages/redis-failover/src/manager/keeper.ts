import type { CommitReply, GetReply, OperationResult, Transaction } from '@incumbent/zookeeper';
import { NoNodeError, TransactionError } from '@incumbent/zookeeper';
import type { Term } from 'incumbent';
import type { ZooKeeperGuard } from 'incumbent/zookeeper';
import type { Nodes, Paths, PositionRecord, PrimaryRecord } from '../layout.ts';
import {
  decodeNodes,
  decodePosition,
  decodePrimary,
  encodeNodes,
  encodePosition,
  encodePrimary,
  isMovedByGem,
} from '../layout.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';
import type { ManagerHooks } from './hooks.ts';

/** The content of the two znodes; undefined for a znode that does not exist. */
export interface Kept {
  readonly record: PrimaryRecord | undefined;
  readonly nodes: Nodes | undefined;
  /** Whether a manager of the gem has moved the primary since the record was written. */
  readonly isMovedByGem: boolean;
}

/**
 * The wanted content of the two znodes. A field that is left out stays as it is. `nodes: null`
 * deletes that znode.
 */
export interface Change {
  readonly record?: PrimaryRecord;
  readonly nodes?: Nodes | null;
  /** Adds operations that belong into the same transaction. */
  readonly also?: (transaction: Transaction) => void;
}

/**
 * The two znodes that name the primary, in one term of the elected manager. Every write is one
 * transaction that also checks the versions that were read, and that the manager's place in the
 * election still exists. So a manager that was suspended changes nothing.
 */
export class Keeper {
  readonly #zk: ZooKeeperClient;
  readonly #paths: Paths;
  readonly #term: Term<ZooKeeperGuard>;
  readonly #hooks: ManagerHooks;
  /** undefined before the first read, and after a write whose outcome is unknown. */
  #kept: (Kept & { readonly versions: Versions }) | undefined;
  /** undefined before the first read, and after a write that failed. */
  #position: { readonly exists: boolean; readonly value: PositionRecord | undefined } | undefined;

  constructor(zk: ZooKeeperClient, paths: Paths, term: Term<ZooKeeperGuard>, hooks: ManagerHooks) {
    this.#zk = zk;
    this.#paths = paths;
    this.#term = term;
    this.#hooks = hooks;
  }

  /** Discards what was read, because others may have changed it: the next `read` asks ZooKeeper. */
  forget(): void {
    this.#kept = undefined;
  }

  /** @returns rejects with LayoutError if something else stands there */
  async read(): Promise<Kept> {
    this.#kept ??= await this.#read();
    return this.#kept;
  }

  /**
   * @returns rejects if the write was refused, and if its outcome is unknown. Then the next `read`
   *   asks ZooKeeper
   */
  async write(change: Change): Promise<void> {
    const { primary, nodes } = this.#paths;
    const before = this.#kept ?? (await this.#read());
    this.#kept = undefined;
    const transaction = this.#begin();
    // A manager has to write the record when it creates `nodes`. Otherwise it would look as if a
    // manager of the gem had created it.
    const creates = before.nodes === undefined && (change.nodes ?? null) !== null;
    const record = change.record ?? (creates ? before.record : undefined);
    if (record !== undefined) {
      const text = encodePrimary(record);
      if (before.record === undefined) transaction.create(primary, text);
      else transaction.set(primary, text, before.versions.record);
    }
    if (change.nodes === null) {
      if (before.nodes !== undefined) transaction.delete(nodes, before.versions.nodes);
    } else if (change.nodes !== undefined) {
      const text = encodeNodes(change.nodes);
      if (before.nodes === undefined) transaction.create(nodes, text);
      else transaction.set(nodes, text, before.versions.nodes);
    }
    change.also?.(transaction);
    const reply = await transaction.commit({ signal: this.#term.signal });
    this.#kept = {
      record: change.record ?? before.record,
      nodes: change.nodes === undefined ? before.nodes : (change.nodes ?? undefined),
      isMovedByGem: record === undefined && before.isMovedByGem,
      versions: versionsAfter(before.versions, reply, this.#paths),
    };
  }

  /**
   * How far the primary on record was when it was last looked at; undefined if no manager has
   * looked, or something else stands there. It only tells which nodes are worth waiting for, so
   * nothing fails without it.
   */
  async position(): Promise<PositionRecord | undefined> {
    this.#position ??= await this.#readPosition();
    return this.#position.value;
  }

  async writePosition(next: PositionRecord): Promise<void> {
    const { position } = this.#paths;
    this.#position ??= await this.#readPosition();
    const { exists, value } = this.#position;
    if (value?.stream === next.stream && value.offset === next.offset) return;
    this.#position = undefined;
    const transaction = this.#begin();
    const text = encodePosition(next);
    if (exists) transaction.set(position, text);
    else transaction.create(position, text);
    await transaction.commit({ signal: this.#term.signal });
    this.#position = { exists: true, value: next };
  }

  async #readPosition() {
    const { position } = this.#paths;
    const { signal } = this.#term;
    await this.#zk.sync(position, { signal });
    const decode = (path: string, text: string) => {
      try {
        return decodePosition(path, text);
      } catch {
        return undefined;
      }
    };
    const found = await readNode(this.#zk, position, decode, signal);
    return { exists: found !== undefined, value: found?.value };
  }

  #begin(): Transaction {
    if (!this.#hooks.broken?.includes('no-assert')) this.#term.assertLeading();
    const transaction = this.#zk.transaction();
    if (!this.#hooks.broken?.includes('no-term-check')) {
      transaction.check(this.#term.guard.path, this.#term.guard.version);
    }
    return transaction;
  }

  async #read(): Promise<Kept & { readonly versions: Versions }> {
    const { primary, nodes } = this.#paths;
    const { signal } = this.#term;
    // The server may still be behind. Then the version check refuses the write.
    await this.#zk.sync(primary, { signal });
    const [record, known] = await Promise.all([
      readNode(this.#zk, primary, decodePrimary, signal),
      readNode(this.#zk, nodes, decodeNodes, signal),
    ]);
    const isMoved =
      record !== undefined &&
      known !== undefined &&
      isMovedByGem({
        record: { value: record.value, modifiedZxid: record.stat.mzxid },
        nodes: { value: known.value, createdZxid: known.stat.czxid },
      });
    return {
      ...{ record: record?.value, nodes: known?.value, isMovedByGem: isMoved },
      versions: { record: record?.stat.version ?? 0, nodes: known?.stat.version ?? 0 },
    };
  }
}

interface Versions {
  readonly record: number;
  readonly nodes: number;
}

/** Whether a transaction was refused because of an operation on that node. */
export function isRefusedAt(error: unknown, path: string): boolean {
  return error instanceof TransactionError && error.path === path;
}

async function readNode<Value>(
  zk: ZooKeeperClient,
  path: string,
  decode: (path: string, text: string) => Value,
  signal: AbortSignal,
): Promise<{ readonly value: Value; readonly stat: GetReply['stat'] } | undefined> {
  try {
    const { text, stat } = await zk.get(path, { signal });
    return { value: decode(path, text), stat };
  } catch (error) {
    if (error instanceof NoNodeError) return undefined;
    throw error;
  }
}

function versionsAfter(before: Versions, { results }: CommitReply, paths: Paths): Versions {
  const version = (path: string, was: number) => {
    const result = results.find((each): each is OperationResult & { path: string } =>
      'path' in each ? each.path === path && each.type !== 'check' : false,
    );
    if (result === undefined) return was;
    return result.type === 'set' ? result.stat.version : 0;
  };
  return {
    record: version(paths.primary, before.record),
    nodes: version(paths.nodes, before.nodes),
  };
}
