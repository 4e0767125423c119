import { inParallel } from '../../base/in-parallel.ts';
import type { Timing } from '../../base/timing.ts';
import type { ElectionBackend, Scope } from '../../core/contest.ts';
import type { ElectionPages, FoundElection } from '../../core/listing.ts';
import { lookingScope, onlyNamed, unreadable } from '../../core/listing.ts';
import type { ZooKeeperClient } from './client.ts';
import { breadcrumbName, lockName } from './hadoop-format.ts';
import { looksLikeRecord } from './lister.ts';
import { nodeOfRecord } from './node-format.ts';
import type { Node } from './walk.ts';
import { visitPage } from './walk.ts';

/** Each is looked at by itself, with a few requests. */
const electionsAtOnce = 50;

/** The elections at a node, by the marks of a layout. */
type ElectionsAt = (node: Node) => readonly string[];

/** The nodes with Hadoop's lock or breadcrumb below them, or with a record of ours. */
export const hadoopElections: ElectionsAt = (node) => {
  if ('error' in node) return [node.name];
  const { name, children, content } = node;
  const isElection =
    children.includes(lockName) || children.includes(breadcrumbName) || looksLikeRecord(content);
  return isElection ? [name] : [];
};

/**
 * The nodes with a record of ours beside them. One that ours have never led is a node like any
 * other.
 */
export const nodeElections: ElectionsAt = ({ name }) => {
  const election = nodeOfRecord(name);
  return election === undefined ? [] : [election];
};

/** The elections of a layout that is a lock. */
export function lockPages(
  client: ZooKeeperClient,
  root: string,
  electionsAt: ElectionsAt,
  open: (scope: Scope) => ElectionBackend<unknown>,
  timing: Timing,
): ElectionPages {
  const goesInto = (child: string) => child !== lockName && child !== breadcrumbName;
  return {
    async page(after, wanted, signal) {
      const { nodes, next } = await visitPage(client, root, after, goesInto, signal);
      const names = nodes.flatMap(electionsAt);
      if (wanted === 'names') {
        return { elections: names.map(onlyNamed), next };
      }
      const elections = await inParallel(names, electionsAtOnce, (name) => inspect(name, signal));
      return { elections, next };
    },
  };

  async function inspect(name: string, signal: AbortSignal): Promise<FoundElection> {
    try {
      const election = open(lookingScope(name, timing));
      try {
        const snapshot = await election.inspect(signal);
        return { name, summarize: () => ({ ...snapshot, waiting: undefined }) };
      } finally {
        await election.close();
      }
    } catch (error) {
      signal.throwIfAborted();
      return unreadable(name, error);
    }
  }
}
