/** The argument of a process that owns shards, the orders that it obeys, and the things that it tells. */
import type { Broken } from './broken.ts';

export const storeNames = ['file', 'postgres', 'redis', 'zookeeper', 'etcd'] as const;
export type StoreName = (typeof storeNames)[number];

export interface MemberPlan {
  readonly store: StoreName;
  /** A directory, or HOST:PORT. */
  readonly address: string;
  readonly id: string;
  /** Of a session on ZooKeeper, and the `ttl` on etcd. */
  readonly leaseMs: number;
  /** The fenced log of each shard, by its number. */
  readonly logs: readonly string[];
  /** Where it writes what it could not do. */
  readonly troubles: string;
  readonly broken?: Broken;
}

/** `resign`: gives up one of its shards. */
export type MemberOrder = 'freeze' | 'drain' | 'close' | 'resign';

export type MemberTells =
  /** Its code runs: from here on it is quick. */
  | { readonly say: 'running' }
  | { readonly say: 'joined' }
  | { readonly say: 'coordinating' }
  /** All is closed, and nothing keeps it any more. */
  | { readonly say: 'left' }
  /** Something that must not be. */
  | { readonly say: 'trouble'; readonly text: string };
