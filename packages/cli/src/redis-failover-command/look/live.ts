/** The znodes as they change. */

import type { Paths, Report } from '@incumbent/redis-failover/internal';
import { decodeNodes, decodePrimary, decodeReport } from '@incumbent/redis-failover/internal';
import type { GetReply, ZooKeeper } from '@incumbent/zookeeper';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';
import type { Znodes } from './znodes.ts';

const nothing: Znodes = {
  record: undefined,
  nodes: undefined,
  leader: undefined,
  reports: new Map(),
  requests: 0,
};

/**
 * Calls `onChange` when everything was read once, and after every change. Changes in quick
 * succession are one call, with the latest state.
 * @returns never resolves; rejects with the reason of `signal`, and with an error that no waiting
 *   cures
 */
export async function followZnodes(
  zk: ZooKeeper,
  paths: Paths,
  signal: AbortSignal,
  onChange: (znodes: Znodes) => void,
): Promise<never> {
  let znodes = nothing;
  // The parts that have to be read before the first call, by name.
  const unread = new Set(['record', 'nodes', 'leader', 'reports', 'requests']);
  const update = (source: string, change: Partial<Znodes>) => {
    znodes = { ...znodes, ...change };
    unread.delete(source);
    if (unread.size === 0 && !signal.aborted) onChange(znodes);
  };
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const followOne = async (path: string, tell: (reply: GetReply | undefined) => void) => {
    for await (const reply of zk.follow(path, { signal: stop })) tell(reply);
  };
  const reportFollowers = new Map<string, AbortController>();
  const followReport = async (manager: string, gone: AbortSignal) => {
    const path = `${paths.reports}/${manager}`;
    for await (const reply of zk.follow(path, { signal: gone })) {
      const report = reply && decodeReport(path, reply.text);
      update(`report ${manager}`, { reports: withReport(znodes.reports, manager, report) });
    }
  };
  const followReports = async () => {
    for await (const reply of zk.followChildren(paths.reports, { signal: stop })) {
      const managers = new Set(reply?.children ?? []);
      for (const [manager, gone] of reportFollowers) {
        if (managers.has(manager)) continue;
        gone.abort();
        reportFollowers.delete(manager);
        unread.delete(`report ${manager}`);
        update('reports', { reports: withReport(znodes.reports, manager, undefined) });
      }
      const isFirst = unread.has('reports');
      for (const manager of managers) {
        if (reportFollowers.has(manager)) continue;
        if (isFirst) unread.add(`report ${manager}`);
        const gone = new AbortController();
        reportFollowers.set(manager, gone);
        followReport(manager, AbortSignal.any([stop, gone.signal])).catch(fail);
      }
      update('reports', {});
    }
  };
  const followRequests = async () => {
    for await (const reply of zk.followChildren(paths.requests, { signal: stop })) {
      update('requests', { requests: reply?.children.length ?? 0 });
    }
  };
  const election = createElection({
    name: paths.election,
    backend: zookeeper(zk, { root: paths.root }),
  });
  const followLeader = async () => {
    for await (const { state, leader, token } of election.observe({ signal: stop })) {
      // It cannot be read at the moment, so the last known leader may still be right.
      if (state === 'unknown' && !unread.has('leader')) continue;
      update('leader', {
        leader: leader && state === 'led' ? { id: leader.id, token } : undefined,
      });
    }
  };
  let fail: (error: unknown) => void = () => {};
  const failure = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  const sources = [
    followOne(paths.primary, (reply) =>
      update('record', { record: reply && decodePrimary(paths.primary, reply.text) }),
    ),
    followOne(paths.nodes, (reply) =>
      update('nodes', { nodes: reply && decodeNodes(paths.nodes, reply.text) }),
    ),
    followReports(),
    followRequests(),
    followLeader(),
  ];
  for (const source of sources) source.catch(fail);
  const onAbort = () => fail(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await failure;
  } finally {
    signal.removeEventListener('abort', onAbort);
    failed.abort();
    await election.close();
  }
}

function withReport(
  reports: Znodes['reports'],
  manager: string,
  report: Report | undefined,
): Znodes['reports'] {
  const next = new Map(reports);
  if (report === undefined) next.delete(manager);
  else next.set(manager, report);
  return next;
}
