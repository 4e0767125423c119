import type { Identity } from '../acl.ts';
import type { DataTree, Undo } from '../data-tree.ts';
import type { TreeEvent } from '../watches.ts';

/** One change of the tree under one zxid; either all of it stays or nothing. */
export class Transaction {
  readonly tree: DataTree;
  readonly zxid: bigint;
  readonly timeMs: number;
  /** 0 for changes that the server makes by itself. */
  readonly sessionId: bigint;
  readonly identities: readonly Identity[];
  readonly events: TreeEvent[] = [];
  readonly #undo: Undo[] = [];

  constructor(
    tree: DataTree,
    at: { readonly zxid: bigint; readonly timeMs: number },
    caller: { readonly sessionId: bigint; readonly identities: readonly Identity[] },
  ) {
    this.tree = tree;
    this.zxid = at.zxid;
    this.timeMs = at.timeMs;
    this.sessionId = caller.sessionId;
    this.identities = caller.identities;
  }

  /** Notes a change that was just made, and its event. */
  did(undo: Undo, type?: TreeEvent['type'], path = ''): void {
    this.#undo.push(undo);
    if (type !== undefined) this.events.push({ type, path, zxid: this.zxid });
  }

  rollBack(): void {
    for (const undo of this.#undo.reverse()) undo();
    this.#undo.length = 0;
    this.events.length = 0;
  }
}
