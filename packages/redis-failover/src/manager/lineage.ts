import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';

/**
 * What the data of a primary include: for each stream of writes the offset up to which they do. The
 * oldest stream comes first, that of the primary itself last.
 */
export type Lineage = ReadonlyMap<string, number>;

/** How far a node's data are, as far as anybody can know. */
export type Position =
  | { readonly kind: 'known'; readonly stream: string; readonly offset: number }
  /** Redis has emptied it, or it never had data. */
  | { readonly kind: 'nothing' }
  /** It reads its files: what it has is not known before it has read them. */
  | { readonly kind: 'loading' }
  /** It may have anything. */
  | { readonly kind: 'unknown' };

/**
 * Whether the primary has all that the node may have, so that the node may be emptied. It goes one way:
 * that the primary has a stream up to an offset does not say that this stream has what is the primary's.
 * @param lineage as on record
 * @param node asked before the primary: a replica may have got more since
 */
export function includes(primary: Replication, lineage: Lineage, node: Replication): boolean {
  const held = lineageOf(primary, lineage);
  const position = positionOf(node, new Map([...lineage, ...held]));
  if (position.kind === 'nothing') return true;
  if (position.kind !== 'known') return false;
  return position.offset <= (held.get(position.stream) ?? -1);
}

/**
 * What a node would include if it were the primary.
 * @param lineage as on record: of the primary there
 */
export function lineageOf(node: Replication, lineage: Lineage): Lineage {
  const { replicationId, formerReplicationId, offset } = node;
  const streams = [...lineage.keys()];
  // Whoever is in a stream has all streams before that, up to where the record says.
  const at = streams.indexOf(replicationId);
  const from =
    at >= 0 || formerReplicationId === undefined ? at : streams.indexOf(formerReplicationId);
  const held = new Map([...lineage].slice(0, Math.max(from, 0)));
  if (formerReplicationId !== undefined) raise(held, formerReplicationId, forkOf(node));
  held.set(replicationId, offset);
  return held;
}

/** @param lineage the streams that are known */
export function positionOf(node: Replication, lineage: Lineage): Position {
  const { replicationId, formerReplicationId, offset } = node;
  const isKnown = lineage.has(replicationId);
  const wasKnown = formerReplicationId !== undefined && lineage.has(formerReplicationId);
  if (
    node.loadsCopy ||
    isEmptied(node) ||
    (node.isEmpty && !isKnown && !wasKnown && !node.loading)
  ) {
    return { kind: 'nothing' };
  }
  if (node.loading) return { kind: 'loading' };
  // PINGs and expired keys move the offset of a primary, too.
  if (wasKnown && !node.hasWritten) {
    return { kind: 'known', stream: formerReplicationId, offset: forkOf(node) };
  }
  const isOffsetFrozen = (node.role === 'primary' || node.isAside) && !node.hasBacklog;
  if (isOffsetFrozen || !(isKnown || wasKnown)) return { kind: 'unknown' };
  return { kind: 'known', stream: replicationId, offset };
}

/** For a copy that broke off. It still says the stream and the offset of what it had. */
export function isEmptied({ isEmpty, role, linkOffset }: Replication): boolean {
  return isEmpty && role === 'replica' && linkOffset === 1;
}

/** More streams than that are not kept: the oldest goes first. */
export const mostStreams: number = 16;

/** What the lineage of a primary is after it has begun a stream of its own, or has written on. */
export function goesOn(lineage: Lineage, primary: Replication): Lineage {
  const { replicationId, formerReplicationId, offset } = primary;
  const next = new Map(lineage);
  const [last] = [...next.keys()].slice(-1);
  if (formerReplicationId !== undefined) {
    raise(next, formerReplicationId, forkOf(primary));
  } else if (last !== undefined && last !== replicationId) {
    // The same process has renamed its stream, as without replicas, and counts on.
    raise(next, last, offset);
  }
  next.delete(replicationId);
  next.set(replicationId, offset);
  return new Map([...next].slice(-mostStreams));
}

/**
 * What the lineage of a primary is when it includes a node with streams of its own, of which the node
 * tells only the last two. They come first: whoever is in those has none of the streams of the primary.
 * Of a node that has nothing they are not noted: it would be taken for one that has the data.
 */
export function joinedBy(lineage: Lineage, node: Replication): Lineage {
  if (positionOf(node, lineage).kind !== 'known') return lineage;
  const { replicationId, formerReplicationId, offset } = node;
  const own = new Map([[replicationId, offset]]);
  if (formerReplicationId !== undefined) own.set(formerReplicationId, forkOf(node));
  const news = [...own].filter(([stream]) => !lineage.has(stream));
  return new Map([...news, ...lineage].slice(-mostStreams));
}

function raise(lineage: Map<string, number>, stream: string, offset: number): void {
  lineage.set(stream, Math.max(offset, lineage.get(stream) ?? -1));
}

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
