/**
 * What the elected manager does about what it sees: rows 2 to 6 of the table in ARCHITECTURE.md. It asks
 * nobody, so every situation can be tried.
 */
import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import type { Replications } from './lineage.ts';
import { includes, isSameProcess, positionOf, recordedLineage } from './lineage.ts';

export interface Situation {
  /** It names a primary. */
  readonly record: PrimaryRecord & { readonly primary: NodeAddress };
  /** All of the set. */
  readonly nodes: readonly NodeAddress[];
  /** Those that have answered. */
  readonly known: Replications;
  /** As the managers judge. */
  readonly isUp: (node: NodeAddress) => boolean;
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
  /** It has nothing, and these may have everything. Only an operator can know. */
  | { readonly do: 'ask-operator'; readonly missing: readonly NodeAddress[] };

/** For how long a primary that came back waits for nodes that are up and do not answer. */
export const patienceMs: number = 10_000;

export function decide(situation: Situation): Decision {
  const { record, known, isUp } = situation;
  const primary = known.get(record.primary);
  const isSame = primary !== undefined && isSameProcess(record, primary);
  if (!isUp(record.primary) || primary?.role === 'replica') {
    const target = otherPrimary(situation);
    if (target !== undefined) return { do: 'move', reason: 'found', target };
  }
  if (!isUp(record.primary) && !(isSame && isIrreplaceable(situation, primary))) {
    return { do: 'move', reason: 'down' };
  }
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
 * record and includes all others whose position is known, or if all others have copied it already.
 */
function otherPrimary({ record, nodes, known }: Situation): NodeAddress | undefined {
  const lineage = recordedLineage(record);
  const found = [...known].filter(([node, each]) => {
    if (node === record.primary || each.role !== 'primary' || each.loading) return false;
    const others = [...known].filter(([other]) => other !== node);
    const isFollowed =
      known.size === nodes.length && others.every(([, its]) => its.primary === node && its.linkUp);
    const goesOnFromIt = positionOf(each, lineage).kind === 'known';
    const hasAll = others.every(
      ([, its]) => positionOf(its, lineage).kind !== 'known' || includes(each, lineage, its),
    );
    return isFollowed || (goesOnFromIt && hasAll);
  });
  return found.length === 1 ? found[0]?.[0] : undefined;
}

/**
 * The managers say that it is down, and this one reaches it: it goes on where no other node has, or can
 * still get, all that it has.
 */
function isIrreplaceable({ record, known }: Situation, primary: Replication): boolean {
  if (primary.role !== 'primary' || primary.loading) return false;
  const lineage = recordedLineage(record);
  return ![...known].some(
    ([node, each]) =>
      node !== record.primary &&
      !each.isAside &&
      !each.loading &&
      each.priority > 0 &&
      positionOf(each, lineage).kind === 'known' &&
      (each.linkUp || includes(each, lineage, primary)),
  );
}

/**
 * In another process it may have lost something: it is taken as it is only if it includes all others
 * whose position is known.
 */
function objectionTo(primary: Replication, situation: Situation): Decision | undefined {
  const { record, nodes, known, isUp, returnedForMs } = situation;
  const lineage = recordedLineage(record);
  const hasLost = [...known].some(
    ([node, each]) =>
      node !== record.primary &&
      positionOf(each, lineage).kind === 'known' &&
      !includes(primary, lineage, each),
  );
  if (hasLost) return { do: 'move', reason: 'lost-data' };
  const missing = nodes.filter(
    (node) => node !== record.primary && known.get(node)?.loading !== false,
  );
  if (positionOf(primary, lineage).kind === 'nothing' && missing.length > 0) {
    return { do: 'ask-operator', missing };
  }
  // With an unknown position it may lack what somebody has who is away, and would copy it.
  const mayLack = positionOf(primary, lineage).kind === 'unknown' && missing.length > 0;
  const isWaitedFor = (mayLack || missing.some((node) => isUp(node))) && returnedForMs < patienceMs;
  return isWaitedFor ? { do: 'wait', missing } : undefined;
}
