/**
 * Questions to a process that owns shards and its answers, in lines of JSON on its stdin and stdout.
 * Instants are monotonic ms, whose origin all processes of a machine share.
 */
export type StoreName = 'zookeeper' | 'postgres' | 'redis' | 'etcd';

export type ContenderName =
  | 'ours on ZooKeeper'
  | 'kazoo on ZooKeeper'
  | 'ours on PostgreSQL'
  | 'ours on Redis'
  | 'ours on etcd';

export const contenders: Readonly<
  Record<ContenderName, { readonly store: StoreName; readonly isOurs: boolean }>
> = {
  'ours on ZooKeeper': { store: 'zookeeper', isOurs: true },
  'kazoo on ZooKeeper': { store: 'zookeeper', isOurs: false },
  'ours on PostgreSQL': { store: 'postgres', isOurs: true },
  'ours on Redis': { store: 'redis', isOurs: true },
  'ours on etcd': { store: 'etcd', isOurs: true },
};
export const contenderNames: readonly ContenderName[] = Object.keys(
  contenders,
) as readonly ContenderName[];

/** The work for a shard has begun, or was told to stop. */
export interface OwnedEvent {
  readonly shard: number;
  readonly atMs: number;
  readonly isOwned: boolean;
}

export interface SetOfShards {
  readonly port: number;
  /** Also the timeout of a session. */
  readonly leaseMs: number;
  readonly name: string;
  readonly shards: number;
  /** The shards have names. Otherwise they have numbers. */
  readonly areNamed?: boolean;
}

export interface MemberMethods {
  /** Takes part, and is answered when it does. */
  readonly join: { readonly params: SetOfShards; readonly result: null };
  /** Leaves the set that it has joined last. */
  readonly leave: { readonly params: object; readonly result: null };
  /** Watches which process owns what, and is answered with the first view. Ours only. */
  readonly observe: { readonly params: SetOfShards; readonly result: null };
  /** Bytes of the heap and of buffers, after a collection. Needs `--expose-gc`. Ours only. */
  readonly memory: { readonly params: object; readonly result: number };
  /** How many shards it owns. */
  readonly owned: { readonly params: object; readonly result: number };
  /** All events so far. */
  readonly log: { readonly params: object; readonly result: readonly OwnedEvent[] };
  /** Moves all of its shards to others. Ours only. */
  readonly drain: { readonly params: object; readonly result: null };
}
