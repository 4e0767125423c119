/** A tree of nodes as ZooKeeper's servers keep it: every server has its own, some of them older. */

export interface Node {
  readonly data: Uint8Array | null;
  readonly czxid: bigint;
  readonly mzxid: bigint;
  /** When a child came or went last. */
  readonly pzxid: bigint;
  readonly version: number;
  /** When it was written last, by the leader's clock. */
  readonly mtime: number;
  /** The session that it dies with; 0n: none. */
  readonly owner: bigint;
  readonly children: readonly string[];
  /** The number of the next sequential child: an int32 that wraps. */
  readonly sequence: number;
}

export type Operation =
  | {
      readonly type: 'create';
      readonly path: string;
      readonly data: Uint8Array | null;
      readonly ephemeral: boolean;
      readonly sequential: boolean;
    }
  | { readonly type: 'delete'; readonly path: string; readonly version: number }
  | {
      readonly type: 'set';
      readonly path: string;
      readonly data: Uint8Array | null;
      readonly version: number;
    }
  | { readonly type: 'check'; readonly path: string; readonly version: number };

export type Code =
  | 'NO_NODE'
  | 'NODE_EXISTS'
  | 'BAD_VERSION'
  | 'NOT_EMPTY'
  | 'NO_CHILDREN_FOR_EPHEMERALS';

export interface Result {
  readonly type: Operation['type'];
  readonly path: string;
  readonly node: Node | undefined;
}

export interface TreeEvent {
  readonly type: 'created' | 'deleted' | 'changed' | 'children-changed';
  readonly path: string;
}

/** The changes of one transaction, on every server. */
export interface Transaction {
  readonly zxid: bigint;
  readonly changes: ReadonlyMap<string, Node | undefined>;
  readonly events: readonly TreeEvent[];
  /** A session that begins or ends with it. */
  readonly begins?: bigint;
  readonly ends?: bigint;
}

export type Prepared =
  | {
      readonly outcome: 'ok';
      readonly transaction: Transaction;
      readonly results: readonly Result[];
    }
  | { readonly outcome: 'refused'; readonly index: number; readonly code: Code };

export class Tree {
  readonly #nodes: Map<string, Node>;

  constructor(nodes: ReadonlyMap<string, Node> = new Map([['/', emptyNode(0n, 0n, null)]])) {
    this.#nodes = new Map(nodes);
  }

  copy(): Tree {
    return new Tree(this.#nodes);
  }

  get(path: string): Node | undefined {
    return this.#nodes.get(path);
  }

  apply({ changes }: Transaction): void {
    for (const [path, node] of changes) {
      if (node === undefined) this.#nodes.delete(path);
      else this.#nodes.set(path, node);
    }
  }

  ownedBy(session: bigint): readonly string[] {
    const owned: string[] = [];
    for (const [path, { owner }] of this.#nodes) if (owner === session) owned.push(path);
    return owned;
  }

  /**
   * The changes of these operations, all together, or the operation that is refused.
   * @param unixMs what becomes the mtime of what they write
   */
  prepare(
    operations: readonly Operation[],
    session: bigint,
    zxid: bigint,
    unixMs: number,
  ): Prepared {
    const changes = new Map<string, Node | undefined>();
    const events: TreeEvent[] = [];
    const results: Result[] = [];
    const look = (path: string) => (changes.has(path) ? changes.get(path) : this.#nodes.get(path));
    for (const [index, operation] of operations.entries()) {
      const refused = (code: Code) => ({ outcome: 'refused', index, code }) as const;
      let { path } = operation;
      let node = look(path);
      if (operation.type === 'create') {
        const parentPath = parentOf(path);
        const parent = look(parentPath);
        if (parent === undefined) return refused('NO_NODE');
        if (parent.owner !== 0n) return refused('NO_CHILDREN_FOR_EPHEMERALS');
        if (operation.sequential) path += sequenceText(parent.sequence);
        if (look(path) !== undefined) return refused('NODE_EXISTS');
        const owner = operation.ephemeral ? session : 0n;
        node = { ...emptyNode(zxid, owner, operation.data), mtime: unixMs };
        changes.set(path, node);
        changes.set(parentPath, {
          ...parent,
          pzxid: zxid,
          sequence: (parent.sequence + 1) | 0,
          children: [...parent.children, nameOf(path)],
        });
        events.push({ type: 'created', path }, { type: 'children-changed', path: parentPath });
      } else {
        if (node === undefined) return refused('NO_NODE');
        if (operation.version !== -1 && operation.version !== node.version) {
          return refused('BAD_VERSION');
        }
        if (operation.type === 'delete') {
          if (node.children.length > 0) return refused('NOT_EMPTY');
          remove(path, zxid, look, changes, events);
        } else if (operation.type === 'set') {
          const version = node.version + 1;
          node = { ...node, data: operation.data, mzxid: zxid, version, mtime: unixMs };
          changes.set(path, node);
          events.push({ type: 'changed', path });
        }
      }
      results.push({ type: operation.type, path, node });
    }
    return { outcome: 'ok', transaction: { zxid, changes, events }, results };
  }

  /** The end of a session takes its nodes with it. */
  prepareEnd(session: bigint, zxid: bigint): Transaction {
    const changes = new Map<string, Node | undefined>();
    const events: TreeEvent[] = [];
    const look = (path: string) => (changes.has(path) ? changes.get(path) : this.#nodes.get(path));
    for (const path of this.ownedBy(session)) remove(path, zxid, look, changes, events);
    return { zxid, changes, events, ends: session };
  }
}

function remove(
  path: string,
  zxid: bigint,
  look: (path: string) => Node | undefined,
  changes: Map<string, Node | undefined>,
  events: TreeEvent[],
): void {
  changes.set(path, undefined);
  const parentPath = parentOf(path);
  const parent = look(parentPath);
  if (parent !== undefined) {
    const name = nameOf(path);
    changes.set(parentPath, {
      ...parent,
      pzxid: zxid,
      children: parent.children.filter((child) => child !== name),
    });
  }
  events.push({ type: 'deleted', path }, { type: 'children-changed', path: parentPath });
}

export function emptyNode(zxid: bigint, owner: bigint, data: Uint8Array | null): Node {
  return {
    data,
    czxid: zxid,
    mzxid: zxid,
    pzxid: zxid,
    version: 0,
    mtime: 0,
    owner,
    children: [],
    sequence: 0,
  };
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** As Java's `%010d` writes an int32. */
function sequenceText(sequence: number): string {
  return sequence < 0
    ? `-${String(-sequence).padStart(9, '0')}`
    : String(sequence).padStart(10, '0');
}
