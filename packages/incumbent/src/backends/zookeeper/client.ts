/**
 * The part of a ZooKeeper client that this backend needs. `@incumbent/zookeeper` has all of it, and
 * nothing of that package is imported here.
 */
export interface ZooKeeperClient {
  /** `connecting`, `connected`, `read-only`, `suspended`, `expired`, `auth-failed` or `closed`. */
  readonly state: string;
  readonly session:
    | { readonly id: bigint; readonly timeoutMs: number; readonly readOnly: boolean }
    | undefined;
  /** @returns a function that stops telling */
  onState(listener: (change: { readonly state: string }) => void): () => void;
  /** Moves to another server if nothing has arrived from this one for so long. */
  leaveSilentServer?(options: { readonly silentForMs: number }): void;
  create(
    path: string,
    data: string | Uint8Array | null,
    options?: NodeOptions & CallOptions,
  ): Promise<{ readonly path: string; readonly stat: NodeStat | null }>;
  get(path: string, options?: CallOptions): Promise<NodeContent>;
  set(
    path: string,
    data: string | Uint8Array | null,
    options?: CallOptions & { readonly version?: number },
  ): Promise<{ readonly stat: NodeStat }>;
  delete(path: string, options?: CallOptions & { readonly version?: number }): Promise<unknown>;
  stat(path: string, options?: CallOptions): Promise<{ readonly stat: NodeStat | null }>;
  getChildren(
    path: string,
    options?: CallOptions,
  ): Promise<{ readonly children: readonly string[] }>;
  /**
   * Several reads in one request (ZooKeeper 3.6). Rejects with INVALID_ARGUMENT or UNIMPLEMENTED where
   * the server does not know it. Then, or without it, each node is read by itself.
   */
  multiRead?(
    reads: readonly { readonly get: string }[],
    options?: CallOptions,
  ): Promise<{
    readonly results: readonly {
      readonly type: string;
      readonly value?: NodeContent;
      readonly error?: unknown;
    }[];
  }>;
  /** Reads after it see all writes that were committed before it. */
  sync(path: string, options?: CallOptions): Promise<unknown>;
  watch(path: string, options?: CallOptions): Promise<NodeWatch<NodeContent | undefined>>;
  watchChildren(
    path: string,
    options?: CallOptions,
  ): Promise<NodeWatch<{ readonly children: readonly string[] }>>;
  transaction(): ZooKeeperTransaction;
  ensurePath(
    path: string,
    options?: CallOptions & { readonly acl?: readonly NodeAcl[] },
  ): Promise<unknown>;
  getAcl(
    path: string,
    options?: CallOptions,
  ): Promise<{ readonly acl: readonly NodeAcl[]; readonly stat: NodeStat }>;
  setAcl(
    path: string,
    acl: readonly NodeAcl[],
    options?: CallOptions & { readonly version?: number },
  ): Promise<unknown>;
}

/** Applied all together or not at all. A refusal is an error with `index` and `cause.code`. */
export interface ZooKeeperTransaction {
  create(path: string, data: string | Uint8Array | null, options?: NodeOptions): this;
  set(path: string, data: string | Uint8Array | null, version?: number): this;
  delete(path: string, version?: number): this;
  check(path: string, version?: number): this;
  commit(options?: CallOptions): Promise<{
    readonly results: readonly { readonly type: string; readonly stat?: NodeStat | null }[];
  }>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface NodeOptions {
  readonly ephemeral?: boolean;
  readonly sequential?: boolean;
  readonly acl?: readonly NodeAcl[];
}

/** As ZooKeeper writes it: `{ perms: 31, scheme: 'world', id: 'anyone' }`. */
export interface NodeAcl {
  readonly perms: number;
  readonly scheme: string;
  readonly id: string;
}

/** The fields of ZooKeeper's `Stat` that are looked at. */
export interface NodeStat {
  readonly czxid: bigint;
  /** The zxid of the last change of the data. */
  readonly mzxid: bigint;
  /** When the data last changed, in ms since 1970, by a server's clock. */
  readonly mtime: number;
  readonly version: number;
  readonly ephemeralOwner: bigint;
  readonly numChildren: number;
  /**
   * The zxid of the last change of the list of children, and the number of such changes. Used by
   * the layout `node`. Without them its winners wait once more than they need.
   */
  readonly pzxid?: bigint;
  readonly cversion?: number;
}

/** The data of a node, and its `Stat`. */
export interface NodeContent {
  readonly data: Uint8Array | null;
  readonly stat: NodeStat;
}

/** A value, and the next change after it. */
export interface NodeWatch<Value> {
  readonly value: Value;
  /** Resolves at the next change, or when it can no longer be told. Never rejects. */
  readonly changed: Promise<unknown>;
  readonly cancel: () => void;
}

/** The `code` of an error of the client, or undefined. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** Which operation of a transaction was refused, and why. */
export function refusalOf(
  error: unknown,
): { readonly index: number; readonly code: string | undefined } | undefined {
  if (codeOf(error) !== 'TRANSACTION_FAILED') return undefined;
  const { index, cause } = error as { index?: unknown; cause?: unknown };
  return typeof index === 'number' ? { index, code: codeOf(cause) } : undefined;
}
