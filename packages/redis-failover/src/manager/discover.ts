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

/** What the managers and their nodes say where no record of ours stands yet. */
export interface FirstSight {
  /** As a manager of the Ruby gem left it. */
  readonly nodes: Nodes | undefined;
  readonly all: readonly NodeAddress[];
  /** Up, as the managers say. */
  readonly available: readonly NodeAddress[];
  /** Those that answer this manager, also those that only others list. */
  readonly known: ReadonlyMap<NodeAddress, Replication>;
  /** Why the others do not. */
  readonly errors: ReadonlyMap<NodeAddress, Error>;
}

export type Discovery =
  /** It is the primary already. */
  | { readonly primary: NodeAddress; readonly isUp: true }
  /** It was, and is down, or a replica: to be replaced. */
  | { readonly primary: NodeAddress; readonly isUp: false };

/**
 * Who is the primary of a set that is managed for the first time: the one that the gem's `nodes` names,
 * else the only one among all nodes, which must all answer.
 * @throws TroubleError with what stands in the way; nothing is changed then
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
    // The gem never writes a node's file: one that starts again is what it was before, also the only primary.
    // A move chooses by the data, unless an operator has decided.
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

/** The first record: nothing was moved. */
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

/** After managers of the gem, who do not know the record. */
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
  // Of one that is down only this is known.
  if (replication === undefined) {
    return { ...first, ...more, replicationId, ...(lineage === undefined ? {} : { lineage }) };
  }
  // What the new primary is not in, it does not include.
  const held = lineageOf(replication, recordedLineage(before));
  return { ...first, ...more, lineage: writtenLineage(goesOn(held, replication)) };
}
