/**
 * Decides what the elected manager does about the nodes as they are: rows 2 to 6 of the table in
 * docs/design/redis-failover-data.md. It is a pure function, so tests can try every situation.
 */
import type { PositionRecord, PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import type { Replications } from './lineage.ts';
import {
  includes,
  isOfReign,
  isSameProcess,
  positionOf,
  reaches,
  recordedLineage,
} from './lineage.ts';

export interface Situation {
  /** The record; it names a primary. */
  readonly record: PrimaryRecord & { readonly primary: NodeAddress };
  /** The nodes of this manager's list. Only these may become the primary. */
  readonly nodes: readonly NodeAddress[];
  /** Nodes that only other managers list. Their data count. */
  readonly others: readonly NodeAddress[];
  /** The nodes that have answered. */
  readonly known: Replications;
  /** The managers' common verdict. */
  readonly isUp: (node: NodeAddress) => boolean;
  /** How far the primary on record was when it was last looked at. */
  readonly position: PositionRecord | undefined;
  /**
   * The time since a primary that was judged down kept its role, because no other node could get
   * all its data. Absent if this term did not begin so.
   */
  readonly cameBackForMs?: number | undefined;
  /** How long the primary on record has been seen in another process; 0 at first sight. */
  readonly returnedForMs: number;
}

export type Decision =
  /** The primary on record is the primary. */
  | { readonly do: 'keep' }
  /** Somebody else has made `target` the primary. */
  | { readonly do: 'move'; readonly reason: 'found'; readonly target: NodeAddress }
  | { readonly do: 'move'; readonly reason: 'down' | 'lost-role' }
  /**
   * The primary on record lacks data that others have. It is set aside first, so that no node
   * copies it.
   */
  | { readonly do: 'move'; readonly reason: 'lost-data' }
  /**
   * The primary is set aside until these nodes have answered, or for `patienceMs`: they may have
   * more.
   */
  | { readonly do: 'wait'; readonly missing: readonly NodeAddress[] }
  /**
   * The primary has no data, or data that no stream on record names, and these nodes may have more.
   * Only an operator can know.
   */
  | { readonly do: 'ask-operator'; readonly missing: readonly NodeAddress[] };

/** The longest wait for nodes that do not answer and may have newer data. */
export const patienceMs: number = 10_000;

/**
 * A primary that is judged down, and kept its role because only it has all data, is not moved again
 * before this time.
 */
const movedAgainAfterMs = 60_000;

export function decide(situation: Situation): Decision {
  const { record, known, isUp } = situation;
  const primary = known.get(record.primary);
  const isSame = primary !== undefined && isSameProcess(record, primary);
  if (!isUp(record.primary) || primary?.role === 'replica') {
    const target = otherPrimary(situation);
    if (target !== undefined) return { do: 'move', reason: 'found', target };
  }
  const runsOn = isSame && primary.role === 'primary' && !primary.loading;
  const goesOnAnyway = runsOn && (cameBack(situation) || isIrreplaceable(situation, primary));
  if (!isUp(record.primary) && !goesOnAnyway) return { do: 'move', reason: 'down' };
  if (primary !== undefined && isReturned(situation)) {
    const objection = objectionTo(primary, situation);
    if (objection !== undefined) return objection;
  }
  // The cause may be its configuration, an operator, or a manager that set it aside while it waited
  // for others.
  return primary?.role === 'replica' ? { do: 'move', reason: 'lost-role' } : { do: 'keep' };
}

/** Whether the primary on record runs in another process, and has read its data. */
export function isReturned({ record, known }: Pick<Situation, 'record' | 'known'>): boolean {
  const primary = known.get(record.primary);
  return primary !== undefined && !primary.loading && !isSameProcess(record, primary);
}

/**
 * A primary that somebody else has made. It becomes the primary of the set if it continues the
 * stream on record and includes all other nodes that do. It also does if all others have copied it
 * already.
 */
function otherPrimary({ record, nodes, known }: Situation): NodeAddress | undefined {
  const found = [...known.keys()].filter(
    (node) => node !== record.primary && isFollowable(node, known, record, { nodes }),
  );
  const [only] = found;
  return only !== undefined && found.length === 1 && nodes.includes(only) ? only : undefined;
}

/**
 * Whether all nodes of the list answer, and all others that answer are replicas connected to this
 * one.
 */
export function isFollowedByAll(
  node: NodeAddress | undefined,
  known: Replications,
  nodes: readonly NodeAddress[],
): boolean {
  const others = [...known].filter(([other]) => other !== node);
  return (
    nodes.every((each) => known.has(each)) &&
    others.every(([, its]) => its.primary === node && its.linkUp)
  );
}

/** Whether a primary that somebody else has made may become the primary of the set. */
export function isFollowable(
  node: NodeAddress,
  known: Replications,
  record: PrimaryRecord,
  { nodes }: Pick<Situation, 'nodes'>,
): boolean {
  const each = known.get(node);
  if (each === undefined || each.role !== 'primary' || each.loading) return false;
  const lineage = recordedLineage(record);
  const others = [...known].filter(([other]) => other !== node);
  const hasAll = others.every(([, its]) => !goesOn(its, record) || includes(each, lineage, its));
  return isFollowedByAll(node, known, nodes) || (goesOn(each, record) && hasAll);
}

/**
 * The treatment of another primary while the one on record is gone. Replicas whose files name that
 * other primary would copy it, so it is set aside unless it has data of the last term. If a move
 * has promoted it and not published it, it is only held, because it may still be chosen. Without a
 * backlog its offset would not count what it has taken, so it is set aside even then.
 */
export function strayAct(node: Replication, record: PrimaryRecord): 'leave' | 'hold' | 'set-aside' {
  if (node.role !== 'primary' || node.loading || isOfReign(node, record)) return 'leave';
  const isPromoted = Object.hasOwn(record.promoting ?? {}, node.replicationId);
  return isPromoted && node.hasBacklog ? 'hold' : 'set-aside';
}

/** Whether its position is known, and it has data of the stream on record. */
function goesOn(node: Replication, record: PrimaryRecord): boolean {
  return positionOf(node, recordedLineage(record)).kind === 'known' && isOfReign(node, record);
}

/**
 * Whether a primary that the managers judge down, but this one reaches, has to stay the primary. It
 * has to if no other node has, or can still get, all its data.
 */
function isIrreplaceable({ record, nodes, known }: Situation, primary: Replication): boolean {
  const lineage = recordedLineage(record);
  return ![...known].some(
    ([node, each]) =>
      node !== record.primary &&
      nodes.includes(node) &&
      !each.isAside &&
      !each.loading &&
      each.priority > 0 &&
      positionOf(each, lineage).kind === 'known' &&
      (each.linkUp || includes(each, lineage, primary)),
  );
}

/** Moving it again at once would only keep clients from writing. */
function cameBack({ cameBackForMs = Infinity }: Situation): boolean {
  return cameBackForMs < movedAgainAfterMs;
}

/**
 * Why a primary in another process is not accepted as it is, since it may have lost something. It
 * has to include all other nodes that have data of the last term. If it has only older data itself,
 * it has to include all other nodes whose data are known.
 */
function objectionTo(primary: Replication, situation: Situation): Decision | undefined {
  const { record, nodes, known, isUp, position, returnedForMs } = situation;
  const lineage = recordedLineage(record);
  const own = positionOf(primary, lineage).kind;
  const isOfBefore = own === 'nothing' || (own === 'known' && !isOfReign(primary, record));
  const others = [...known].filter(([node]) => node !== record.primary);
  const hasLost = others.some(([, each]) => {
    const { kind } = positionOf(each, lineage);
    // Data that cannot be placed may be all that there is.
    if (kind === 'unknown') return isOfBefore && !each.isEmpty;
    const counts = kind === 'known' && (isOfBefore || isOfReign(each, record));
    return counts && !includes(primary, lineage, each);
  });
  if (hasLost) return { do: 'move', reason: 'lost-data' };
  const missing = [...nodes, ...situation.others].filter(
    (node) => node !== record.primary && known.get(node)?.loading !== false,
  );
  if (own === 'nothing' && missing.length > 0) return { do: 'ask-operator', missing };
  // It may have all data of its last term, or next to nothing.
  const before = others.flatMap(([node, each]) =>
    positionOf(each, lineage).kind === 'known' ? [node] : [],
  );
  if (own === 'unknown' && before.length > 0) return { do: 'ask-operator', missing: before };
  // It lacks, or may lack, the data of a node that is away, and that node would copy it when it
  // comes back.
  const lacks = position !== undefined && !reaches(primary, lineage, position);
  const mayLack = (own === 'unknown' || lacks) && missing.length > 0;
  const isWaitedFor = (mayLack || missing.some((node) => isUp(node))) && returnedForMs < patienceMs;
  return isWaitedFor ? { do: 'wait', missing } : undefined;
}
