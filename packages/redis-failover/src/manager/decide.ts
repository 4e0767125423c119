/**
 * What the elected manager does about what it sees: rows 2 to 6 of the table in
 * docs/design/redis-failover-data.md. It asks no node, so every situation can be tried.
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
  /** It names a primary. */
  readonly record: PrimaryRecord & { readonly primary: NodeAddress };
  /** Those of this manager's list: only they are made the primary. */
  readonly nodes: readonly NodeAddress[];
  /** Nodes that only other managers list: what they have counts. */
  readonly others: readonly NodeAddress[];
  /** Those that have answered. */
  readonly known: Replications;
  /** As the managers judge. */
  readonly isUp: (node: NodeAddress) => boolean;
  /** How far the primary on record was when it was looked at last. */
  readonly position: PositionRecord | undefined;
  /** Since when its term began by a move to itself, because nobody else could get all it has. */
  readonly cameBackForMs?: number | undefined;
  /** Since when the primary on record is seen in another process; 0 at first sight. */
  readonly returnedForMs: number;
}

export type Decision =
  /** The primary on record is the primary. */
  | { readonly do: 'keep' }
  /** Somebody else has made `target` the primary. */
  | { readonly do: 'move'; readonly reason: 'found'; readonly target: NodeAddress }
  | { readonly do: 'move'; readonly reason: 'down' | 'lost-role' }
  /** The primary on record lacks what others have. It is set aside first, so that nobody copies it. */
  | { readonly do: 'move'; readonly reason: 'lost-data' }
  /** It is set aside until these have answered, or for `patienceMs`: they may have more. */
  | { readonly do: 'wait'; readonly missing: readonly NodeAddress[] }
  /** It has nothing, or nobody can place what it has, and these may have more. Only an operator can know. */
  | { readonly do: 'ask-operator'; readonly missing: readonly NodeAddress[] };

/** For how long a primary that came back waits for nodes that are up and do not answer. */
export const patienceMs: number = 10_000;

/** After that a primary that is judged down is moved again, although nobody could get all it has before. */
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
  // By its configuration, by somebody's hand, or because it was set aside while others were waited for.
  return primary?.role === 'replica' ? { do: 'move', reason: 'lost-role' } : { do: 'keep' };
}

/** The primary on record runs in another process, and has read its data. */
export function isReturned({ record, known }: Pick<Situation, 'record' | 'known'>): boolean {
  const primary = known.get(record.primary);
  return primary !== undefined && !primary.loading && !isSameProcess(record, primary);
}

/**
 * A primary that somebody else has made. It is taken for the one of the set if it goes on from the
 * stream on record and includes all others that do, or if all others have copied it already.
 */
function otherPrimary({ record, nodes, known }: Situation): NodeAddress | undefined {
  const found = [...known.keys()].filter(
    (node) => node !== record.primary && isFollowable(node, known, record, { nodes }),
  );
  const [only] = found;
  return only !== undefined && found.length === 1 && nodes.includes(only) ? only : undefined;
}

/** Whether all nodes of the list are there, and all that answer are replicas of that one, and connected. */
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

/** Whether a primary that somebody else has made may be taken for the one of the set. */
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
 * What becomes of another primary while the one on record is not there: replicas that were told so before
 * would copy it. It may stay where it has something of the last term. One that a move has promoted and not
 * published may still be chosen; without a backlog its offset would not say what it has taken.
 */
export function strayAct(node: Replication, record: PrimaryRecord): 'leave' | 'hold' | 'set-aside' {
  if (node.role !== 'primary' || node.loading || isOfReign(node, record)) return 'leave';
  const isPromoted = Object.hasOwn(record.promoting ?? {}, node.replicationId);
  return isPromoted && node.hasBacklog ? 'hold' : 'set-aside';
}

/** Its position is known, and it has something of the stream on record. */
function goesOn(node: Replication, record: PrimaryRecord): boolean {
  return positionOf(node, recordedLineage(record)).kind === 'known' && isOfReign(node, record);
}

/**
 * The managers say that it is down, and this one reaches it: it goes on where no other node has, or can
 * still get, all that it has.
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

/** To move it again at once would only keep everybody from writing. */
function cameBack({ cameBackForMs = Infinity }: Situation): boolean {
  return cameBackForMs < movedAgainAfterMs;
}

/**
 * In another process it may have lost something: it is taken as it is only if it includes all others that
 * go on from the stream on record. Who has only streams of before counts where it has no more itself.
 */
function objectionTo(primary: Replication, situation: Situation): Decision | undefined {
  const { record, nodes, known, isUp, position, returnedForMs } = situation;
  const lineage = recordedLineage(record);
  const own = positionOf(primary, lineage).kind;
  const isOfBefore = own === 'nothing' || (own === 'known' && !isOfReign(primary, record));
  const others = [...known].filter(([node]) => node !== record.primary);
  const hasLost = others.some(([, each]) => {
    const { kind } = positionOf(each, lineage);
    // Data that nobody can place may be all that there is.
    if (kind === 'unknown') return isOfBefore && !each.isEmpty;
    const counts = kind === 'known' && (isOfBefore || isOfReign(each, record));
    return counts && !includes(primary, lineage, each);
  });
  if (hasLost) return { do: 'move', reason: 'lost-data' };
  const missing = [...nodes, ...situation.others].filter(
    (node) => node !== record.primary && known.get(node)?.loading !== false,
  );
  if (own === 'nothing' && missing.length > 0) return { do: 'ask-operator', missing };
  // It may have all of its last term, or next to nothing of anything.
  const before = others.flatMap(([node, each]) =>
    positionOf(each, lineage).kind === 'known' ? [node] : [],
  );
  if (own === 'unknown' && before.length > 0) return { do: 'ask-operator', missing: before };
  // It may lack, or lacks for sure, what somebody has who is away, and would copy it.
  const lacks = position !== undefined && !reaches(primary, lineage, position);
  const mayLack = (own === 'unknown' || lacks) && missing.length > 0;
  const isWaitedFor = (mayLack || missing.some((node) => isUp(node))) && returnedForMs < patienceMs;
  return isWaitedFor ? { do: 'wait', missing } : undefined;
}
