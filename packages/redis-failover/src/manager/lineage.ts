import type { PositionRecord, PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';

/**
 * The streams of writes that a primary's data include, each with the offset up to which they do.
 * The oldest stream comes first, the primary's own last.
 */
export type Lineage = ReadonlyMap<string, number>;

/** How far a node's data are, as far as a manager can know. */
export type Position =
  | { readonly kind: 'known'; readonly stream: string; readonly offset: number }
  /** Redis has emptied the node, or it never had data. */
  | { readonly kind: 'nothing' }
  /** The node reads its files. Its data are known only afterwards. */
  | { readonly kind: 'loading' }
  /** The node may have any data. */
  | { readonly kind: 'unknown' };

/**
 * Whether the primary has all that the node may have, so that the node may be emptied. The relation
 * has one direction. If the primary includes a stream up to an offset, a node in that stream need
 * not have anything of the primary's.
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

/** Whether a node has all that a primary had when it was last looked at. */
export function reaches(node: Replication, lineage: Lineage, primary: PositionRecord): boolean {
  if (positionOf(node, lineage).kind !== 'known') return false;
  return (lineageOf(node, lineage).get(primary.stream) ?? -1) >= primary.offset;
}

/**
 * The lineage that a node would have as the primary.
 * @param lineage as on record: that of the primary there
 */
export function lineageOf(node: Replication, lineage: Lineage): Lineage {
  const { replicationId, formerReplicationId, offset } = node;
  const branch = branchOf(node, lineage);
  const streams = [...branch.keys()];
  // A node in a stream has all streams before it, up to where the record says.
  const at = streams.indexOf(replicationId);
  const from =
    at >= 0 || formerReplicationId === undefined ? at : streams.indexOf(formerReplicationId);
  const held = new Map([...branch].slice(0, Math.max(from, 0)));
  if (formerReplicationId !== undefined) raise(held, formerReplicationId, forkOf(node));
  held.set(replicationId, offset);
  return held;
}

/** @param lineage the known streams */
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
  const isOffsetFrozen = isMute(node);
  const hasBegun = isOffsetFrozen || offset > forkOf(node);
  // PINGs and expired keys also move the offset of a primary.
  if (wasKnown && !(node.hasWritten && hasBegun)) {
    return { kind: 'known', stream: formerReplicationId, offset: forkOf(node) };
  }
  if (isOffsetFrozen || !(isKnown || wasKnown)) return { kind: 'unknown' };
  return { kind: 'known', stream: replicationId, offset };
}

/**
 * Whether the node's offset may not count writes that it has taken. A primary without a backlog
 * does not count them. A replica gets a backlog with the first write that arrives, so one that has
 * writes and no backlog was such a primary before.
 */
export function isMute({ role, isAside, hasBacklog, hasWritten }: Replication): boolean {
  return !hasBacklog && (role === 'primary' || isAside || hasWritten);
}

/**
 * Whether a node has data of the current term: anything of the stream that the primary on record
 * writes, or of a later one. A node with older streams only lacks all writes of that term. (The
 * code calls the current term a reign.)
 */
export function isOfReign(node: Replication, record: StreamsOnRecord): boolean {
  const lineage = recordedLineage(record);
  const since = [...lineage.keys()].indexOf(record.replicationId ?? '');
  return latestStream(node, lineage) >= Math.max(since, 0);
}

/** The index of the latest stream of which the node has data; -1 if there is none. */
export function latestStream(node: Replication, lineage: Lineage): number {
  const streams = [...lineage.keys()];
  const held = [...lineageOf(node, lineage).keys()];
  return Math.max(...held.map((stream) => streams.indexOf(stream)));
}

/**
 * Whether Redis has emptied the node for a copy that then broke off. Such a node still reports the
 * stream and offset of its lost data. So does one that begins to read its files after a start, and
 * that one has its data.
 */
export function isEmptied({ isEmpty, role, linkOffset, loading }: Replication): boolean {
  return isEmpty && role === 'replica' && linkOffset === 1 && !loading;
}

/** The most streams that a lineage keeps. The oldest goes first. */
export const mostStreams: number = 16;

/** The lineage of a primary after it has begun a stream of its own, or has written more. */
export function goesOn(lineage: Lineage, primary: Replication): Lineage {
  const { replicationId, formerReplicationId, offset } = primary;
  const next = new Map(lineage);
  const [last] = [...next.keys()].slice(-1);
  if (formerReplicationId !== undefined) {
    raise(next, formerReplicationId, forkOf(primary));
  } else if (last !== undefined && last !== replicationId) {
    // Without replicas Redis renames the stream of a process after a time, and goes on counting.
    raise(next, last, offset);
  }
  next.delete(replicationId);
  next.set(replicationId, offset);
  return new Map([...next].slice(-mostStreams));
}

/**
 * The lineage with a stream on record raised to at least that offset. A stream that is not on
 * record is not added. Only the present primary includes it, and a replica that is behind would
 * count as including it, too.
 */
export function reaching(lineage: Lineage, stream: string, offset: number): Lineage {
  if (!lineage.has(stream)) return lineage;
  const next = new Map(lineage);
  raise(next, stream, offset);
  return next;
}

/**
 * The lineage without old streams of unfinished promotions: only the last two of them stay. A node
 * that is promoted again and again begins a new stream each time, and would push out those of the
 * last term.
 */
export function withoutUnfinished(lineage: Lineage, record: StreamsOnRecord): Lineage {
  const published = publishedLineage(record);
  const last = [...lineage.keys()].slice(-2);
  return new Map([...lineage].filter(([stream]) => published.has(stream) || last.includes(stream)));
}

/** All streams that the record names, including those of an unfinished promotion. */
export function recordedLineage(record: StreamsOnRecord): Lineage {
  const published = publishedLineage(record);
  const { promoting } = record;
  if (promoting === undefined) return published;
  return new BranchedLineage(published, new Map(Object.entries(promoting)));
}

/**
 * The lineage of the last published term. Of a record that version 0.1.0 wrote only the primary's
 * stream is known.
 */
export function publishedLineage({ lineage, replicationId }: StreamsOnRecord): Lineage {
  if (lineage !== undefined) return new Map(Object.entries(lineage));
  return replicationId === null ? new Map() : new Map([[replicationId, 0]]);
}

type StreamsOnRecord = Pick<PrimaryRecord, 'lineage' | 'promoting' | 'replicationId'>;

/**
 * Two lineages with a common beginning. One is that of the last term. The other is that of a node
 * that was promoted since, and may lack a part of the first. Streams that only the second has stand
 * first, because no client has written there.
 */
class BranchedLineage extends Map<string, number> {
  readonly published: Lineage;
  readonly promoted: Lineage;

  constructor(published: Lineage, promoted: Lineage) {
    super([...[...promoted].filter(([stream]) => !published.has(stream)), ...published]);
    this.published = published;
    this.promoted = promoted;
  }
}

/** The one of the two lineages that the node belongs to. */
function branchOf({ replicationId, formerReplicationId = '' }: Replication, lineage: Lineage) {
  if (!(lineage instanceof BranchedLineage)) return lineage;
  const stream = lineage.has(replicationId) ? replicationId : formerReplicationId;
  const { published, promoted } = lineage;
  return promoted.has(stream) && !published.has(stream) ? promoted : published;
}

/** A lineage as the record has it. */
export function writtenLineage(lineage: Lineage): Readonly<Record<string, number>> {
  return Object.fromEntries(lineage);
}

/**
 * The process on record for a primary that was down at first sight. Any process that comes back
 * there differs from it.
 */
export const noProcess: string = '0'.repeat(40);

/** Whether the primary on record still runs in the process on record, and was not emptied. */
export function isSameProcess(
  record: StreamsOnRecord & Pick<PrimaryRecord, 'runId'>,
  primary: Replication,
): boolean {
  if (record.runId === null) return true;
  if (record.runId !== primary.runId) return false;
  const lineage = recordedLineage(record);
  const { replicationId, formerReplicationId, offset } = primary;
  if (lineage.size === 0 || lineage.has(replicationId)) return true;
  // It was made a replica and promoted again by hand. If it has copied another node meanwhile, it
  // names another stream.
  if (formerReplicationId !== undefined) return formerReplicationId === record.replicationId;
  // Without replicas Redis begins a new stream, and goes on counting. Only the stream on record
  // counts, because earlier ones may have gone further elsewhere.
  return offset >= (publishedLineage(record).get(record.replicationId ?? '') ?? 0);
}

function raise(lineage: Map<string, number>, stream: string, offset: number): void {
  lineage.set(stream, Math.max(offset, lineage.get(stream) ?? -1));
}

/** Nodes, with what each says of its data, asked at one time. */
export type Replications = ReadonlyMap<NodeAddress, Replication>;

/** Whether a node's data belong to that stream, or continue it. */
export function isOfLineage(replication: Replication, replicationId: string): boolean {
  const { replicationId: id, formerReplicationId } = replication;
  return id === replicationId || formerReplicationId === replicationId;
}

/**
 * The last byte of the former stream. Redis reports the first byte that is no longer part of it.
 */
function forkOf({ formerOffset }: Replication): number {
  return formerOffset - 1;
}

/**
 * How much a node has of a stream, as an offset in it. Writes of its own since its promotion do not
 * count.
 */
export function offsetIn(replication: Replication, known: string | null): number {
  const { replicationId, formerReplicationId, offset } = replication;
  if (replicationId === known || formerReplicationId !== known) return offset;
  return Math.min(offset, forkOf(replication));
}

/** The largest group of nodes with a common stream, for a set whose record names no stream. */
export function largestGroup(replications: Replications): Replications {
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

function isSameLineage(a: Replication, b: Replication): boolean {
  const { formerReplicationId: former } = a;
  if (former !== undefined && former === b.formerReplicationId) return true;
  return isOfLineage(a, b.replicationId) || isOfLineage(b, a.replicationId);
}
