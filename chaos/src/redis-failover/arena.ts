import type { Auditor } from './auditor.ts';
import type { Client } from './clients.ts';
import type { RecordJudge } from './judge.ts';
import type { Managers } from './managers.ts';
import type { RedisNode } from './nodes.ts';
import type { Servers } from './servers.ts';

/** Everything that can be struck in a set, and what is known of it. */
export interface Arena {
  readonly nodes: readonly RedisNode[];
  readonly managers: Managers;
  readonly clients: readonly Client[];
  readonly servers: Servers;
  readonly auditor: Auditor;
  /** In ZooKeeper. */
  readonly root: string;
  readonly records: RecordJudge;
  readonly note: (line: string) => void;
}

/** Also while it moves: who was it last. */
export function primaryOf({ nodes, records }: Arena): RedisNode {
  const address = records.lastPrimary;
  return nodes.find((node) => node.address === address) ?? (nodes[0] as RedisNode);
}
