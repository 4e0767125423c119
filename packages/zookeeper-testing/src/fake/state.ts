import { opcodes } from '@incumbent/zookeeper/internal';
import type { Identity } from './acl.ts';
import { DataTree } from './data-tree.ts';
import { Refusal } from './refusal.ts';
import type { Session } from './sessions.ts';
import { Sessions } from './sessions.ts';
import { removeUnconditionally } from './transactions/changes.ts';
import { Transaction } from './transactions/transaction.ts';
import type { TreeEvent } from './watches.ts';

/** A server as the state knows it. */
export interface Replica {
  committed(events: readonly TreeEvent[]): void;
  sessionEnded(id: bigint): void;
}

export interface Caller {
  readonly sessionId: bigint;
  readonly identities: readonly Identity[];
}

const nobody: Caller = { sessionId: 0n, identities: [{ scheme: 'super', id: '' }] };

/**
 * The state that all servers of an ensemble share: the nodes, the sessions, the last zxid, the
 * time.
 */
export class State {
  readonly tree: DataTree = new DataTree();
  readonly sessions: Sessions;
  readonly replicas: Set<Replica> = new Set();
  readonly tickTimeMs: number;
  nowMs: number;
  lastZxid: bigint;

  constructor(options: { tickTimeMs: number; nowMs: number; epoch: number }) {
    this.tickTimeMs = options.tickTimeMs;
    this.nowMs = options.nowMs;
    this.lastZxid = BigInt(options.epoch) << 32n;
    this.sessions = new Sessions(options.tickTimeMs);
  }

  /**
   * Runs one transaction. Its watchers are told before this returns. A refused one takes a zxid,
   * too.
   * @throws Refusal when `apply` does; nothing has changed then
   */
  write<T>(caller: Caller, apply: (transaction: Transaction) => T): T {
    this.lastZxid += 1n;
    const at = { zxid: this.lastZxid, timeMs: this.nowMs };
    const transaction = new Transaction(this.tree, at, caller);
    let result: T;
    try {
      result = apply(transaction);
    } catch (error) {
      transaction.rollBack();
      throw error;
    }
    for (const replica of this.replicas) replica.committed(transaction.events);
    return result;
  }

  createSession(timeoutMs: number, owner: object, serverId: number): Session {
    return this.write(nobody, () => this.sessions.create(timeoutMs, this.nowMs, owner, serverId));
  }

  /**
   * Ends a session with its ephemeral nodes, in one transaction, and closes its connections.
   * @param except the server that closes its connection itself, behind a reply
   */
  endSession(id: bigint, except?: Replica): void {
    this.write(nobody, (transaction) => {
      for (const path of this.tree.ephemeralsOf(id)) removeUnconditionally(transaction, path);
      this.sessions.delete(id);
    });
    for (const replica of this.replicas) if (replica !== except) replica.sessionEnded(id);
  }

  /** Lets the clock go on, tick by tick. */
  advanceTo(targetMs: number): void {
    while (this.nowMs < targetMs) {
      const tickMs = (Math.floor(this.nowMs / this.tickTimeMs) + 1) * this.tickTimeMs;
      this.nowMs = Math.min(tickMs, targetMs);
      if (this.nowMs === tickMs) this.#tick();
    }
  }

  #tick(): void {
    for (const { id } of this.sessions.due(this.nowMs)) this.endSession(id);
    for (const path of this.tree.expired(this.nowMs)) {
      this.write(nobody, (transaction) => removeUnconditionally(transaction, path));
    }
  }
}

/** Requests that take a zxid and that only a server with a quorum can answer. */
export const writes: ReadonlySet<number> = new Set<number>([
  opcodes.create,
  opcodes.create2,
  opcodes.createContainer,
  opcodes.createTtl,
  opcodes.delete,
  opcodes.setData,
  opcodes.setAcl,
  opcodes.multi,
  opcodes.reconfig,
  opcodes.closeSession,
]);

/** The code of a Refusal. Any other error is a defect, and is thrown. */
export function codeOf(error: unknown): number {
  if (error instanceof Refusal) return error.code;
  throw error;
}
