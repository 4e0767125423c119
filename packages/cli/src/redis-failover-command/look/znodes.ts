/** The znodes of one set of Redis servers, read once. */

import type { NodeAddress } from '@incumbent/redis-failover';
import type { Nodes, Paths, PrimaryRecord, Report } from '@incumbent/redis-failover/internal';
import { decodeNodes, decodePrimary, decodeReport } from '@incumbent/redis-failover/internal';
import type { ZooKeeper } from '@incumbent/zookeeper';
import { NoNodeError } from '@incumbent/zookeeper';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';

export interface Znodes {
  /** The record of our managers; undefined before there is one. */
  readonly record: PrimaryRecord | undefined;
  /**
   * The roles as the gem's clients read them; undefined while the primary moves, and before the
   * first one.
   */
  readonly nodes: Nodes | undefined;
  /** The manager that is elected. */
  readonly leader: Leader | undefined;
  /** By manager. */
  readonly reports: ReadonlyMap<string, Report>;
  /** Requests for a failover that wait. */
  readonly requests: number;
}

export interface Leader {
  readonly id: string;
  readonly token: bigint | undefined;
}

/** @returns rejects with LayoutError if something else stands there */
export async function readZnodes(
  zk: ZooKeeper,
  paths: Paths,
  signal: AbortSignal,
): Promise<Znodes> {
  const [record, nodes, leader, reports, requests] = await Promise.all([
    readNode(zk, paths.primary, signal, decodePrimary),
    readNode(zk, paths.nodes, signal, decodeNodes),
    readLeader(zk, paths, signal),
    readReports(zk, paths, signal),
    childrenOf(zk, paths.requests, signal),
  ]);
  return { record, nodes, leader, reports, requests: requests.length };
}

/** Every node that is named anywhere, in the order of their addresses. */
export function addressesOf({ record, nodes, reports }: Znodes): readonly NodeAddress[] {
  const named = [
    record?.primary,
    nodes?.master,
    ...(nodes?.slaves ?? []),
    ...(nodes?.unavailable ?? []),
    ...[...reports.values()].flatMap(({ available, unavailable }) => [
      ...Object.keys(available),
      ...unavailable,
    ]),
  ];
  const addresses = named.filter((each) => each !== undefined && each !== null);
  return [...new Set(addresses)].sort();
}

async function readLeader(
  zk: ZooKeeper,
  paths: Paths,
  signal: AbortSignal,
): Promise<Leader | undefined> {
  const backend = zookeeper(zk, { root: paths.root });
  const election = createElection({ name: paths.election, backend });
  try {
    const { state, leader, token } = await election.leader({ signal });
    return state === 'led' && leader !== undefined ? { id: leader.id, token } : undefined;
  } finally {
    await election.close();
  }
}

async function readReports(
  zk: ZooKeeper,
  paths: Paths,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Report>> {
  const managers = [...(await childrenOf(zk, paths.reports, signal))].sort();
  const reports = await Promise.all(
    managers.map((manager) => readNode(zk, `${paths.reports}/${manager}`, signal, decodeReport)),
  );
  // A manager that has gone meanwhile has no report.
  return new Map(
    managers.flatMap((manager, index) => {
      const report = reports[index];
      return report === undefined ? [] : [[manager, report] as const];
    }),
  );
}

async function readNode<T>(
  zk: ZooKeeper,
  path: string,
  signal: AbortSignal,
  decode: (path: string, text: string) => T,
): Promise<T | undefined> {
  try {
    const { text } = await zk.get(path, { signal });
    return decode(path, text);
  } catch (error) {
    if (error instanceof NoNodeError) return undefined;
    throw error;
  }
}

async function childrenOf(
  zk: ZooKeeper,
  path: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    return (await zk.getChildren(path, { signal })).children;
  } catch (error) {
    if (error instanceof NoNodeError) return [];
    throw error;
  }
}
