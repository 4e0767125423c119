/** The nodes, and what is known of them. Knows no session, no permission and no watch. */

import type { Acl, Stat } from '@incumbent/zookeeper';
import { errorCodes } from '@incumbent/zookeeper/internal';
import { lastName, watchedParent } from './paths.ts';
import { Refusal } from './refusal.ts';

/** The ephemeralOwner of a container. */
export const containerOwner: bigint = -(2n ** 63n);
/** The first byte of ephemeralOwner at a node with a TTL; the other seven are the TTL in ms. */
const ttlMark = 0xffn << 56n;
export const maxTtlMs: number = 2 ** 40 - 1;

/** Undoes a change of the tree. */
export type Undo = () => void;

export interface TreeNode {
  data: Uint8Array | null;
  acl: readonly Acl[];
  czxid: bigint;
  mzxid: bigint;
  pzxid: bigint;
  ctime: number;
  mtime: number;
  version: number;
  aversion: number;
  ephemeralOwner: bigint;
  /** Children ever created: the number that the next sequential child gets. */
  creates: number;
  children: Set<string>;
}

export const openAcl: readonly Acl[] = [{ perms: 31, scheme: 'world', id: 'anyone' }];
const readableAcl: readonly Acl[] = [{ perms: 1, scheme: 'world', id: 'anyone' }];

export function ttlOwner(ttlMs: number): bigint {
  return BigInt.asIntN(64, ttlMark | BigInt(ttlMs));
}

/** The TTL in ms of a node, undefined where it has none. */
export function ttlOf(node: TreeNode): number | undefined {
  const owner = BigInt.asUintN(64, node.ephemeralOwner);
  return owner >> 56n === 0xffn ? Number(owner & 0xff_ffff_ffffn) : undefined;
}

/** Whether the node ends with a session. */
export function isEphemeral(node: TreeNode): boolean {
  const { ephemeralOwner } = node;
  return ephemeralOwner !== 0n && ephemeralOwner !== containerOwner && ttlOf(node) === undefined;
}

export function newNode(fields: Partial<TreeNode>): TreeNode {
  return {
    ...{ data: new Uint8Array(0), acl: openAcl, czxid: 0n, mzxid: 0n, pzxid: 0n },
    ...{ ctime: 0, mtime: 0, version: 0, aversion: 0, ephemeralOwner: 0n },
    ...{ creates: 0, children: new Set<string>() },
    ...fields,
  };
}

export function statOf(node: TreeNode): Stat {
  return {
    czxid: node.czxid,
    mzxid: node.mzxid,
    ctime: node.ctime,
    mtime: node.mtime,
    version: node.version,
    // Only creates are counted; every child that is gone was one more change.
    cversion: (node.creates * 2 - node.children.size) | 0,
    aversion: node.aversion,
    // The values that mark containers and TTLs are not shown.
    ephemeralOwner: isEphemeral(node) ? node.ephemeralOwner : 0n,
    dataLength: node.data?.length ?? 0,
    numChildren: node.children.size,
    pzxid: node.pzxid,
  };
}

export class DataTree {
  readonly #nodes: Map<string, TreeNode>;
  readonly #ephemerals: Map<bigint, Set<string>>;
  /** Paths of containers and of nodes with a TTL. */
  readonly #selfDeleting: Set<string>;

  constructor() {
    this.#nodes = new Map<string, TreeNode>([
      ['/', newNode({ children: new Set(['zookeeper']) })],
      ['/zookeeper', newNode({ children: new Set(['config', 'quota']) })],
      ['/zookeeper/config', newNode({ acl: readableAcl, aversion: -1 })],
      ['/zookeeper/quota', newNode({})],
    ]);
    this.#ephemerals = new Map();
    this.#selfDeleting = new Set();
  }

  get(path: string): TreeNode | undefined {
    return this.#nodes.get(path === '' ? '/' : path);
  }

  /** @throws Refusal with -101 */
  need(path: string): TreeNode {
    const node = this.get(path);
    if (node === undefined) throw new Refusal(errorCodes.noNode);
    return node;
  }

  entries(): IterableIterator<[string, TreeNode]> {
    return this.#nodes.entries();
  }

  ephemeralsOf(sessionId: bigint): readonly string[] {
    return [...(this.#ephemerals.get(sessionId) ?? [])];
  }

  /** How many nodes lie below `path`, however deep. */
  countBelow(path: string): number {
    if (path === '/') return this.#nodes.size - 1;
    let count = 0;
    for (const other of this.#nodes.keys()) if (other.startsWith(`${path}/`)) count += 1;
    return count;
  }

  /** Containers that were used and are empty, and nodes without children whose TTL is over. */
  expired(nowMs: number): readonly string[] {
    return [...this.#selfDeleting].filter((path) => {
      const node = this.need(path);
      if (node.children.size > 0) return false;
      const ttlMs = ttlOf(node);
      return ttlMs === undefined ? node.creates > 0 : nowMs - node.mtime > ttlMs;
    });
  }

  insert(path: string, node: TreeNode): Undo {
    const parent = this.need(watchedParent(path));
    const { pzxid } = parent;
    parent.creates = (parent.creates + 1) | 0;
    parent.pzxid = node.czxid;
    this.#link(path, parent, node);
    return () => {
      this.#unlink(path, parent, node);
      parent.creates = (parent.creates - 1) | 0;
      parent.pzxid = pzxid;
    };
  }

  remove(path: string, zxid: bigint): Undo {
    const node = this.need(path);
    const parent = this.need(watchedParent(path));
    const { pzxid } = parent;
    parent.pzxid = zxid;
    this.#unlink(path, parent, node);
    return () => {
      this.#link(path, parent, node);
      parent.pzxid = pzxid;
    };
  }

  /** Sets some fields of a node. */
  change(path: string, fields: Partial<Omit<TreeNode, 'children' | 'ephemeralOwner'>>): Undo {
    const node = this.need(path);
    const before = { ...node };
    Object.assign(node, fields);
    return () => Object.assign(node, before);
  }

  /** A tree that no later change reaches. */
  copy(): DataTree {
    const copy = new DataTree();
    copy.#nodes.clear();
    for (const [path, node] of this.#nodes) {
      copy.#nodes.set(path, { ...node, children: new Set(node.children) });
    }
    for (const [id, paths] of this.#ephemerals) copy.#ephemerals.set(id, new Set(paths));
    return copy;
  }

  #link(path: string, parent: TreeNode, node: TreeNode): void {
    parent.children.add(lastName(path));
    this.#nodes.set(path, node);
    if (isEphemeral(node)) {
      const paths = this.#ephemerals.get(node.ephemeralOwner) ?? new Set();
      this.#ephemerals.set(node.ephemeralOwner, paths.add(path));
    } else if (node.ephemeralOwner !== 0n) {
      this.#selfDeleting.add(path);
    }
  }

  #unlink(path: string, parent: TreeNode, node: TreeNode): void {
    parent.children.delete(lastName(path));
    this.#nodes.delete(path);
    this.#selfDeleting.delete(path);
    const paths = this.#ephemerals.get(node.ephemeralOwner);
    paths?.delete(path);
    if (paths?.size === 0) this.#ephemerals.delete(node.ephemeralOwner);
  }
}
