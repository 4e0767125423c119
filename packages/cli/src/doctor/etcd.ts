/** Findings about the members of an etcd cluster, as far as elections depend on them. */
import type { Timing } from 'incumbent';
import { formatDuration } from 'incumbent';
import { etcd } from 'incumbent/etcd';
import type { EtcdConnections, EtcdReport } from '../etcd/connect.ts';
import { inWords } from '../etcd/connect.ts';
import { deleteKey } from '../etcd/raw-calls.ts';
import { formatBytes } from './file-system.ts';
import type { Finding } from './finding.ts';
import type { Scratch } from './scratch.ts';
import { compareVersions } from './zookeeper-servers.ts';

/** Before it, a server that was cut off could answer for a lease that was over. */
const oldestVersion = '3.4.0';
const longestAskMs = 2_000;
/** etcd's own bound, unless it was told another; then it takes no writes any more. */
const quotaBytes = 2 * 1024 ** 3;

export async function examineEtcd(
  connections: EtcdConnections,
  timing: Timing,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const reports = await connections.askMembers(Math.min(longestAskMs, timeoutMs / 2), signal);
  const { options } = connections.location;
  return [
    ...memberFindings(reports),
    quorumFinding(reports),
    takeoverFinding(timing, options.predecessorWait !== 'off'),
    ...(options.predecessorWait === 'off' ? [noWait] : []),
    {
      check: 'clock',
      level: 'note',
      message: 'not applicable: etcd tells no time, and no election depends on one',
    },
  ];
}

/** The election to measure on: its record is removed again, its places go with the lease. */
export function scratchOnEtcd(name: string, connections: EtcdConnections): Scratch {
  const { clients, auth, location } = connections;
  const { root = '' } = location.options;
  return {
    name,
    backend: etcd(clients, {
      ...location.options,
      ...(auth === undefined ? {} : { auth }),
      // No other process has this name, so no leader can have come before: there is nothing to wait
      // for.
      predecessorWait: 'off',
    }),
    look: async () => [],
    remove: (signal) => deleteKey(connections, `${root}incumbent/record/${name}`, signal),
  };
}

export function memberFindings(reports: readonly EtcdReport[]): Finding[] {
  return reports.map((report): Finding => {
    const { server, status } = report;
    if (status === undefined) {
      const message = `does not serve: ${inWords(report)}`;
      return { check: 'member', level: 'warn', message, data: { server } };
    }
    const { version, leader, memberId, raftTerm, dbSize, isLearner, errors } = status;
    const role = isLearner ? 'learner' : leader === memberId ? 'leader' : 'follower';
    const data = { server, version, role, raftTerm, dbSizeBytes: Number(dbSize), errors };
    const facts = `${server} ${role}, version ${version}, ${formatBytes(Number(dbSize))}`;
    const finding = (level: Finding['level'], message: string): Finding => ({
      check: 'member',
      level,
      message,
      data,
    });
    if (compareVersions(version, oldestVersion) < 0) {
      return finding('warn', `${facts}: older than ${oldestVersion}, which this was tried on`);
    }
    if (leader === 0n) return finding('warn', `${facts}: it knows no leader`);
    if (errors.length > 0) {
      const level = errors.some((each) => /NOSPACE|CORRUPT/i.test(each)) ? 'broken' : 'warn';
      return finding(level, `${facts}: ${errors.join(', ')}`);
    }
    if (Number(dbSize) > 0.8 * quotaBytes) {
      return finding('warn', `${facts}: near the quota of 2 GiB, unless it was told another`);
    }
    return finding('ok', facts);
  });
}

export function quorumFinding(reports: readonly EtcdReport[]): Finding {
  const serving = reports.flatMap(({ status }) => (status === undefined ? [] : [status]));
  const leaders = new Set(serving.map(({ leader }) => leader).filter((leader) => leader !== 0n));
  const data = { named: reports.length, serving: serving.length };
  const finding = (level: Finding['level'], message: string): Finding => ({
    check: 'quorum',
    level,
    message,
    data,
  });
  if (leaders.size === 0) return finding('broken', 'no member knows a leader');
  if (leaders.size > 1) {
    return finding(
      'broken',
      'the members name different leaders: these are not one cluster, or it is just electing',
    );
  }
  if (reports.length === 1) {
    return finding(
      'note',
      'one member is named: name them all, so that another serves when it is away',
    );
  }
  return finding('ok', `${serving.length} of ${reports.length} named members serve, one leader`);
}

/** How long a takeover takes after a crash. */
export function takeoverFinding(
  { leaseMs, beliefMs, clockDrift }: Timing,
  waits: boolean,
): Finding {
  const waitMs = waits ? (beliefMs * (1 + clockDrift)) / (1 - clockDrift) : 0;
  return {
    check: 'takeover',
    level: 'note',
    message:
      `after a crash somebody leads within ${formatDuration(leaseMs + waitMs + 500)}: lease ` +
      `${formatDuration(leaseMs)}, late by up to 500ms` +
      (waits ? `, belief of the last leader ${formatDuration(waitMs)}` : '') +
      '; servers raise a lease that is shorter than one and a half of their election timeouts',
    data: { leaseMs, waitMs },
  };
}

const noWait: Finding = {
  check: 'predecessor',
  level: 'warn',
  message:
    'predecessor-wait=off: after a leader that ended unclean two may believe at once, and only ' +
    'tokens keep them apart',
};
