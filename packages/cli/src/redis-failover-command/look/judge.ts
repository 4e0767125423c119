/** Whether all is well with a set of Redis servers, by its znodes and by what the servers say. */

import type { NodeAddress } from '@incumbent/redis-failover';
import {
  missingFrom,
  recordedLineage,
  sayShortList,
  shortLists,
} from '@incumbent/redis-failover/internal';
import type { Answer } from './roles.ts';
import type { Znodes } from './znodes.ts';

export type ProblemCode =
  | 'NO_RECORD'
  | 'NO_PRIMARY'
  | 'MOVING'
  | 'NO_MANAGER'
  | 'NODE_DOWN'
  | 'NODE_UNREACHABLE'
  | 'NODE_REFUSED'
  | 'ROLE'
  | 'QUARANTINED'
  | 'REPLICATION'
  | 'RECORDS_DIFFER'
  | 'LISTS_DIFFER';

export interface Problem {
  readonly code: ProblemCode;
  readonly message: string;
  readonly node?: NodeAddress;
}

/**
 * The primary on record, as clients see it. A manager of the gem may have moved it since our
 * managers have gone.
 */
export function primaryOf({ record, nodes }: Znodes): NodeAddress | null | undefined {
  return nodes?.master ?? record?.primary;
}

/** The problems of a set, the worst first. Empty: healthy. */
export function findProblems(
  znodes: Znodes,
  answers: ReadonlyMap<NodeAddress, Answer>,
): readonly Problem[] {
  const primary = primaryOf(znodes) ?? undefined;
  const ofNodes = [...answers].flatMap(([node, answer]) =>
    nodeProblems(node, answer, primary, znodes, answers),
  );
  return [...recordProblems(znodes), ...ofNodes];
}

function recordProblems(znodes: Znodes): readonly Problem[] {
  const { record, nodes, leader, reports } = znodes;
  const problems: Problem[] = [];
  const add = (code: ProblemCode, message: string) => problems.push({ code, message });
  if (record === undefined && nodes === undefined) {
    add(
      'NO_RECORD',
      reports.size === 0
        ? 'no manager has kept anything here: is the root right, and does a manager run?'
        : 'no primary has been found yet: the log of the managers says why',
    );
  } else if (record !== undefined && record.primary === null) {
    const from = record.former === null ? '' : ` away from ${record.former}`;
    add('MOVING', `the primary is being moved${from}, or nobody can be promoted`);
  } else if (record === undefined && nodes?.master === null) {
    add('NO_PRIMARY', 'nobody is the primary');
  } else if (record !== undefined && nodes === undefined) {
    add('RECORDS_DIFFER', `\`nodes\` is missing, so clients of the Ruby gem see no primary`);
  } else if (record !== undefined && nodes?.master !== record.primary) {
    add(
      'RECORDS_DIFFER',
      `\`primary\` says ${record.primary}, and \`nodes\` ${nodes?.master ?? 'nobody'}`,
    );
  }
  // Managers of the Ruby gem elect one of themselves in another way, and write no record.
  if (leader === undefined && (record !== undefined || reports.size === 0)) {
    add('NO_MANAGER', 'no manager leads, so nobody would fail over');
  }
  for (const list of shortLists(reports)) add('LISTS_DIFFER', sayShortList(list));
  return problems;
}

function nodeProblems(
  node: NodeAddress,
  { replication, error }: Answer,
  primary: NodeAddress | undefined,
  { nodes, record }: Znodes,
  answers: ReadonlyMap<NodeAddress, Answer>,
): readonly Problem[] {
  const problem = (code: ProblemCode, message: string): Problem => ({ code, message, node });
  const isDown = nodes?.unavailable.includes(node) === true;
  const down = isDown ? [problem('NODE_DOWN', `${node} is down, as the managers say`)] : [];
  if (replication === undefined) {
    if (isDown) return [problem('NODE_DOWN', `${node} is down: ${error.message}`)];
    const code =
      'code' in error && error.code === 'NODE_REFUSED' ? 'NODE_REFUSED' : 'NODE_UNREACHABLE';
    return [problem(code, error.message)];
  }
  const { role, primary: followed, linkUp, syncing, loading, copiedPercent } = replication;
  if (replication.isAside) {
    const own = primary === undefined ? undefined : answers.get(primary)?.replication;
    const lacks =
      own?.role !== 'primary' || record === undefined
        ? ''
        : `; ${primary} lacks ${missingFrom(own, recordedLineage(record), replication)}`;
    const at = `at ${replication.offset} in ${replication.replicationId}`;
    const discard =
      node === primary ? '' : `, or incumbent-redis discard ${node} to throw them away`;
    return [
      problem(
        'QUARANTINED',
        `${node} is set aside with its data (${at}${lacks}): say incumbent-redis keep ${node} to go on ` +
          `with them${discard}`,
      ),
      ...down,
    ];
  }
  if (node === primary && role !== 'primary') {
    const whom = followed === undefined ? '' : ` of ${followed}`;
    return [problem('ROLE', `${node} is the primary on record, and is a replica${whom}`), ...down];
  }
  if (node === primary) return down;
  if (role === 'primary') {
    const instead = primary === undefined ? '' : `, and the one on record is ${primary}`;
    return [problem('ROLE', `${node} is a primary${instead}`), ...down];
  }
  if (primary !== undefined && followed !== primary) {
    return [problem('ROLE', `${node} follows ${followed}, and the primary is ${primary}`), ...down];
  }
  if (loading || syncing) {
    return [
      ...down,
      problem(
        'REPLICATION',
        `${node} takes a whole copy of the data${copiedPercent === undefined ? '' : `, ${copiedPercent} %`}`,
      ),
    ];
  }
  return linkUp
    ? down
    : [...down, problem('REPLICATION', `${node} has no connection with its primary`)];
}
