import type { Nodes, PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import {
  goesOn,
  includes,
  lineageOf,
  noProcess,
  recordedLineage,
  writtenLineage,
} from './lineage.ts';
import { TroubleError } from './trouble.ts';

/** The state of a set for which our managers have no record yet. */
export interface FirstSight {
  /** As a manager of the Ruby gem left it. */
  readonly nodes: Nodes | undefined;
  readonly all: readonly NodeAddress[];
  /** The nodes that are up by the managers' verdict. */
  readonly available: readonly NodeAddress[];
  /** The nodes that answer this manager, including those that only others list. */
  readonly known: ReadonlyMap<NodeAddress, Replication>;
  /** Why the other nodes do not answer. */
  readonly errors: ReadonlyMap<NodeAddress, Error>;
}

export type Discovery =
  /** The node is the primary already. */
  | { readonly primary: NodeAddress; readonly isUp: true }
  /** The node was the primary, and is down or a replica now: another one has to replace it. */
  | { readonly primary: NodeAddress; readonly isUp: false };

/**
 * The primary of a set that our managers see for the first time. It is the node that the gem's
 * `nodes` names. Without that znode it is the only primary among all nodes, which must all answer.
 * @throws TroubleError with the reason if no node qualifies; nothing is changed then
 */
export function discoverPrimary({ nodes, all, available, known, errors }: FirstSight): Discovery {
  const named = nodes?.master ?? null;
  if (named !== null) {
    if (!all.includes(named)) throw strangePrimary(named, all);
    const replication = known.get(named);
    if (replication === undefined) {
      if (!available.includes(named)) return { primary: named, isUp: false };
      throw new TroubleError('NO_PRIMARY', `${named} does not answer this manager`);
    }
    if (replication.role === 'primary') return { primary: named, isUp: true };
    const others = primariesOf(known);
    const [only] = others;
    // The gem never rewrites a node's configuration file. So a restart makes a node what it was
    // before, and the only primary may be such a node. A move chooses by the data, unless an
    // operator has decided.
    if (only === undefined) return { primary: named, isUp: false };
    if (others.length === 1 && all.includes(only)) {
      const own = known.get(only);
      const isFollowed = [...known].every(
        ([node, each]) => node === only || each.primary === only || each.isAside,
      );
      const hasAll = own !== undefined && includes(own, new Map(), replication);
      return isFollowed || hasAll ? { primary: only, isUp: true } : { primary: named, isUp: false };
    }
    throw new TroubleError(
      'NO_PRIMARY',
      `${named}, which \`nodes\` names, is a replica now, and ${others.join(' and ')} are ` +
        'primaries: make one the primary (REPLICAOF NO ONE), and the others its replicas',
    );
  }
  const missing = all.filter((node) => !known.has(node));
  if (missing.length > 0) {
    const why = missing.map((node) => `${node}: ${errors.get(node)?.message ?? 'no answer'}`);
    throw new TroubleError(
      'NO_PRIMARY',
      'no primary is on record yet, so every node must answer before one is taken for it: ' +
        why.join('; '),
    );
  }
  const primaries = primariesOf(known);
  const [only] = primaries;
  if (only === undefined || (primaries.length === 1 && !all.includes(only))) {
    throw new TroubleError(
      'NO_PRIMARY',
      `none of ${all.join(', ')} is a primary: make one of them one (REPLICAOF NO ONE)`,
    );
  }
  if (primaries.length > 1) throw severalPrimaries(primaries);
  return { primary: only, isUp: true };
}

export function primariesOf(known: ReadonlyMap<NodeAddress, Replication>): readonly NodeAddress[] {
  return [...known].flatMap(([node, { role }]) => (role === 'primary' ? [node] : []));
}

function severalPrimaries(primaries: readonly NodeAddress[]): TroubleError {
  return new TroubleError(
    'MULTIPLE_PRIMARIES',
    `${primaries.join(' and ')} are primaries, and nothing says whose data count: make all but one ` +
      'of them replicas (REPLICAOF host port), which throws away what only they have',
  );
}

export function strangePrimary(node: NodeAddress, all: readonly NodeAddress[]): TroubleError {
  return new TroubleError(
    'LAYOUT',
    `the primary on record is ${node}, which is not among the nodes of this manager ` +
      `(${all.join(', ')}): name it among them, spelt alike, or use another root`,
  );
}

/** The first record, for a primary that keeps its role. */
export function firstRecord(
  primary: NodeAddress,
  replication: Replication | undefined,
  more: Omit<PrimaryRecord, 'term' | 'primary' | 'former' | 'replicationId' | 'runId' | 'lineage'>,
): PrimaryRecord {
  const { replicationId = null, runId = noProcess } = replication ?? {};
  const lineage =
    replication === undefined ? {} : { lineage: writtenLineage(goesOn(new Map(), replication)) };
  return { term: 1, primary, former: null, replicationId, runId, ...lineage, ...more };
}

/** The next record after managers of the gem led: they do not write it. */
export function goesOnAfterGem(
  before: PrimaryRecord,
  first: PrimaryRecord,
  replication: Replication | undefined,
): PrimaryRecord {
  const { term, primary, former, replicationId, lineage } = before;
  const more = {
    ...{ term: term + 1, former: primary ?? former },
    viewMs: Math.max(before.viewMs, first.viewMs),
  };
  // Of a primary that is down only the streams before the gem are known.
  if (replication === undefined) {
    return { ...first, ...more, replicationId, ...(lineage === undefined ? {} : { lineage }) };
  }
  // The new primary does not include streams that it has not gone through.
  const held = lineageOf(replication, recordedLineage(before));
  return { ...first, ...more, lineage: writtenLineage(goesOn(held, replication)) };
}
