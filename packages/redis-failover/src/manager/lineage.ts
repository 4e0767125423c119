import type { PositionRecord, PrimaryRecord } from '../layout.ts';
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

/** Whether a node has all that a primary had when it was looked at last. */
export function reaches(node: Replication, lineage: Lineage, primary: PositionRecord): boolean {
  if (positionOf(node, lineage).kind !== 'known') return false;
  return (lineageOf(node, lineage).get(primary.stream) ?? -1) >= primary.offset;
}

/**
 * What a node would include if it were the primary.
 * @param lineage as on record: of the primary there
 */
export function lineageOf(node: Replication, lineage: Lineage): Lineage {
  const { replicationId, formerReplicationId, offset } = node;
  const branch = branchOf(node, lineage);
  const streams = [...branch.keys()];
  // Whoever is in a stream has all streams before that, up to where the record says.
  const at = streams.indexOf(replicationId);
  const from =
    at >= 0 || formerReplicationId === undefined ? at : streams.indexOf(formerReplicationId);
  const held = new Map([...branch].slice(0, Math.max(from, 0)));
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
  const isOffsetFrozen = isMute(node);
  const hasBegun = isOffsetFrozen || offset > forkOf(node);
  // PINGs and expired keys move the offset of a primary, too.
  if (wasKnown && !(node.hasWritten && hasBegun)) {
    return { kind: 'known', stream: formerReplicationId, offset: forkOf(node) };
  }
  if (isOffsetFrozen || !(isKnown || wasKnown)) return { kind: 'unknown' };
  return { kind: 'known', stream: replicationId, offset };
}

/**
 * Whether its offset may not count what it has taken: a primary without a backlog does not count. As a replica it
 * gets one with the first write that arrives; so one that has written without was such a primary before.
 */
export function isMute({ role, isAside, hasBacklog, hasWritten }: Replication): boolean {
  return !hasBacklog && (role === 'primary' || isAside || hasWritten);
}

/**
 * Whether a node has anything of the stream that the primary on record writes, or of one after it. Whoever
 * has only streams of before lacks all of its term.
 */
export function isOfReign(node: Replication, record: StreamsOnRecord): boolean {
  const lineage = recordedLineage(record);
  const since = [...lineage.keys()].indexOf(record.replicationId ?? '');
  return latestStream(node, lineage) >= Math.max(since, 0);
}

/** Which of the streams is the latest one that the node has anything of; -1: it has none. */
export function latestStream(node: Replication, lineage: Lineage): number {
  const streams = [...lineage.keys()];
  const held = [...lineageOf(node, lineage).keys()];
  return Math.max(...held.map((stream) => streams.indexOf(stream)));
}

/**
 * For a copy that broke off. It still says the stream and the offset of what it had. One that begins to
 * read its files after a start says the same, and has them.
 */
export function isEmptied({ isEmpty, role, linkOffset, loading }: Replication): boolean {
  return isEmpty && role === 'replica' && linkOffset === 1 && !loading;
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
 * The same with a stream on record that is included up to there at least. Others are not added: only the
 * primary of now includes them, and whoever is behind it would count as one that does, too.
 */
export function reaching(lineage: Lineage, stream: string, offset: number): Lineage {
  if (!lineage.has(stream)) return lineage;
  const next = new Map(lineage);
  raise(next, stream, offset);
  return next;
}

/**
 * Of the streams of promotions that were not finished only the last two: a node that is promoted again and
 * again begins one each time, and would push those of the last term out.
 */
export function withoutUnfinished(lineage: Lineage, record: StreamsOnRecord): Lineage {
  const published = publishedLineage(record);
  const last = [...lineage.keys()].slice(-2);
  return new Map([...lineage].filter(([stream]) => published.has(stream) || last.includes(stream)));
}

/** All streams that the record names, those of a promotion that is not finished included. */
export function recordedLineage(record: StreamsOnRecord): Lineage {
  const published = publishedLineage(record);
  const { promoting } = record;
  if (promoting === undefined) return published;
  return new BranchedLineage(published, new Map(Object.entries(promoting)));
}

/**
 * Of the last term that was published; of a record that version 0.1.0 has written only the stream of the
 * primary is known.
 */
export function publishedLineage({ lineage, replicationId }: StreamsOnRecord): Lineage {
  if (lineage !== undefined) return new Map(Object.entries(lineage));
  return replicationId === null ? new Map() : new Map([[replicationId, 0]]);
}

type StreamsOnRecord = Pick<PrimaryRecord, 'lineage' | 'promoting' | 'replicationId'>;

/**
 * Two lineages that part somewhere: that of the last term, and that of a node that was promoted since, which
 * may lack some of the first. Streams of the second one only come first: nobody has written there.
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

/** The one of the two lineages that the node is in. */
function branchOf({ replicationId, formerReplicationId = '' }: Replication, lineage: Lineage) {
  if (!(lineage instanceof BranchedLineage)) return lineage;
  const stream = lineage.has(replicationId) ? replicationId : formerReplicationId;
  const { published, promoted } = lineage;
  return promoted.has(stream) && !published.has(stream) ? promoted : published;
}

/** As it stands in the record. */
export function writtenLineage(lineage: Lineage): Readonly<Record<string, number>> {
  return Object.fromEntries(lineage);
}

/** On record for a primary that was down when it was seen first: whoever comes back there is another one. */
export const noProcess: string = '0'.repeat(40);

/** Whether the primary on record still runs in the process on record, and nobody has emptied it. */
export function isSameProcess(
  record: StreamsOnRecord & Pick<PrimaryRecord, 'runId'>,
  primary: Replication,
): boolean {
  if (record.runId === null) return true;
  if (record.runId !== primary.runId) return false;
  const lineage = recordedLineage(record);
  const { replicationId, formerReplicationId, offset } = primary;
  if (lineage.size === 0 || lineage.has(replicationId)) return true;
  // Demoted and promoted again by hand: if it has copied somebody meanwhile, it names another one.
  if (formerReplicationId !== undefined) return formerReplicationId === record.replicationId;
  // Without replicas Redis begins a new stream, and counts on. Streams of before may have gone further elsewhere.
  return offset >= (publishedLineage(record).get(record.replicationId ?? '') ?? 0);
}

function raise(lineage: Map<string, number>, stream: string, offset: number): void {
  lineage.set(stream, Math.max(offset, lineage.get(stream) ?? -1));
}

/** Nodes by what they say of their data, asked at one time. */
export type Replications = ReadonlyMap<NodeAddress, Replication>;

/** Whether the data of a node are those of that stream, or go on from it. */
export function isOfLineage(replication: Replication, replicationId: string): boolean {
  const { replicationId: id, formerReplicationId } = replication;
  return id === replicationId || formerReplicationId === replicationId;
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

/** Where no stream is on record: the nodes that share one, as many as there are. */
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
