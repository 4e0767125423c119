import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';

/** Nodes by what they say of their data, asked at one time. */
export type Replications = ReadonlyMap<NodeAddress, Replication>;

/** Whether the offsets of two nodes count the same stream of writes, at least in its beginning. */
export function isSameLineage(a: Replication, b: Replication): boolean {
  return isOfLineage(a, b.replicationId) || isOfLineage(b, a.replicationId) || haveSameFormer(a, b);
}

/** Whether the data of a node are those of that stream, or go on from it. */
export function isOfLineage(replication: Replication, replicationId: string): boolean {
  const { replicationId: id, formerReplicationId } = replication;
  return id === replicationId || formerReplicationId === replicationId;
}

/** Whether a node has all that another one had of the stream that the first one is in. */
export function hasAllOf(node: Replication, other: Replication): boolean {
  if (other.replicationId === node.replicationId) return other.offset <= node.offset;
  // Since then the other one has written a stream of its own: to whom, is for the caller to know.
  if (other.formerReplicationId === node.replicationId) return forkOf(other) <= node.offset;
  // This one was started anew with its data, and goes on from there.
  if (other.replicationId === node.formerReplicationId) return other.offset <= forkOf(node);
  if (haveSameFormer(node, other)) return forkOf(other) <= forkOf(node);
  return false;
}

/**
 * Whether a primary, whose process was started anew, came back with less than another node has of the
 * stream that it wrote before: without its data or with an older copy of them. Its replicas would copy
 * that.
 */
export function hasLess(primary: Replication, other: Replication, written: string): boolean {
  if (other.syncing || other.loading || !isOfLineage(other, written)) return false;
  // It is reading them, or has read them: from such a file it cannot tell which stream they are of.
  if (primary.loading || primary.keepsData) return false;
  if (primary.replicationId === written) return false;
  if (primary.formerReplicationId !== written) return true;
  return (
    other.replicationId !== primary.replicationId && forkOf(primary) < offsetIn(other, written)
  );
}

/** The last byte of the stream of before: Redis gives the first one that is not of it. */
function forkOf({ formerOffset }: Replication): number {
  return formerOffset - 1;
}

/**
 * How much a node has of a stream of writes, as an offset in it: what it wrote of its own since it was
 * promoted does not count.
 */
export function offsetIn(replication: Replication, known: string | null): number {
  const { replicationId, formerReplicationId, offset } = replication;
  if (replicationId === known || formerReplicationId !== known) return offset;
  return Math.min(offset, forkOf(replication));
}

/**
 * The nodes whose data can be compared, and count: those of the known stream, and what goes on from it.
 * A node that was set up anew, that has lost its data, or that wrote on for itself after another one
 * was made the primary, has another one.
 * @param isComplete nobody is missing who may have data of the known stream: where none has, those of
 *   the largest group count
 */
export function mainLineage(
  replications: Replications,
  known: string | null,
  isComplete: boolean,
): Replications {
  const ofKnown = known === null ? new Map() : descendants(replications, known);
  if (ofKnown.size > 0) return ofKnown;
  return known === null || isComplete ? largestGroup(replications) : new Map();
}

function descendants(replications: Replications, known: string): Map<NodeAddress, Replication> {
  const streams = new Set([known]);
  for (let grown = true; grown; ) {
    grown = false;
    for (const { replicationId, formerReplicationId } of replications.values()) {
      if (formerReplicationId === undefined || streams.has(replicationId)) continue;
      if (!streams.has(formerReplicationId)) continue;
      streams.add(replicationId);
      grown = true;
    }
  }
  return new Map([...replications].filter(([, each]) => streams.has(each.replicationId)));
}

function largestGroup(replications: Replications): Replications {
  let groups: Map<NodeAddress, Replication>[] = [];
  for (const [node, replication] of replications) {
    const isJoined = (group: Replications) =>
      [...group.values()].some((other) => isSameLineage(replication, other));
    const joined = groups.filter(isJoined);
    groups = groups.filter((group) => !isJoined(group));
    groups.push(new Map([...joined.flatMap((group) => [...group]), [node, replication]]));
  }
  const most = (group: Replications) =>
    Math.max(...[...group.values()].map(({ offset }) => offset));
  groups.sort((a, b) => b.size - a.size || most(b) - most(a));
  return groups[0] ?? new Map();
}

function haveSameFormer(a: Replication, b: Replication): boolean {
  return a.formerReplicationId !== undefined && a.formerReplicationId === b.formerReplicationId;
}
