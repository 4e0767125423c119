import { BadVersionError, NoNodeError } from '@incumbent/zookeeper';
import type { FailoverRequest, Paths } from '../layout.ts';
import { anyReplica, decodeRequest, encodeRequest } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';
import type { Moved, Publication } from './move-world.ts';

/**
 * A request for another primary, by a client of ours or of the gem, or an operator's decision. (The
 * code calls a request a wish.)
 */
export interface Wish {
  /** null: the best replica. */
  readonly node: NodeAddress | null;
  /** Left out: a failover. */
  readonly action?: FailoverRequest['action'];
  /** The identity of the request, the same in each look. */
  readonly key: string;
  /** How long a node that still copies is waited for. */
  readonly waitMs: number;
  /** Tells the requester what the manager waits for. */
  readonly tell: ((progress: string) => Promise<void>) | undefined;
  /** Operations that belong into the publication that fulfils it. */
  readonly publication: Publication;
  /**
   * Refuses the request with a reason. undefined if the requester cannot be told; then the record
   * notes that the request was handled.
   */
  readonly refuse: ((error: string) => Promise<void>) | undefined;
  /** Answers a request that needs no move, because the node is the primary already. */
  readonly fulfil: ((moved: Moved) => Promise<void>) | undefined;
}

/** For requests that name no time. */
const usualWaitMs = 30_000;

/**
 * The open requests of our clients, the oldest first. One that cannot be read is skipped: it
 * belongs to its client, and goes with its session.
 */
export async function openRequests(
  zk: ZooKeeperClient,
  paths: Paths,
  signal: AbortSignal,
): Promise<readonly Wish[]> {
  const { children } = await zk.getChildren(paths.requests, { signal });
  const wishes: Wish[] = [];
  const sequence = (name: string) => name.slice(-10);
  for (const child of [...children].sort((a, b) => (sequence(a) < sequence(b) ? -1 : 1))) {
    const path = `${paths.requests}/${child}`;
    try {
      const { text, stat } = await zk.get(path, { signal });
      const request = decodeRequest(path, text);
      if (request.outcome === undefined) wishes.push(wishOf(zk, path, stat.version, request));
    } catch (error) {
      if (error instanceof NoNodeError || isLayoutError(error)) continue;
      throw error;
    }
  }
  return wishes;
}

/**
 * The request that a client of the Ruby gem has written to `manual_failover`, unless it was
 * handled. The gem never clears that znode, so the zxid of its last write decides.
 */
export async function manualWish(
  zk: ZooKeeperClient,
  paths: Paths,
  seen: string,
  signal: AbortSignal,
): Promise<Wish | undefined> {
  const { stat } = await zk.stat(paths.manualFailover, { signal });
  if (stat === null || stat.mzxid <= BigInt(seen)) return undefined;
  const { text, stat: read } = await zk.get(paths.manualFailover, { signal });
  const manualSeen = `${read.mzxid}`;
  const node = text.trim();
  // The gem ignores an empty request, too.
  if (node === '') return undefined;
  return {
    node: node === anyReplica ? null : node,
    key: manualSeen,
    waitMs: usualWaitMs,
    tell: undefined,
    publication: { manualSeen },
    refuse: undefined,
    fulfil: undefined,
  };
}

/**
 * The zxid up to which `manual_failover` counts as handled when there is no record yet: old
 * requests are not carried out.
 */
export async function manualSeenNow(
  zk: ZooKeeperClient,
  paths: Paths,
  signal: AbortSignal,
): Promise<string> {
  const { stat } = await zk.stat(paths.manualFailover, { signal });
  return `${stat?.mzxid ?? 0n}`;
}

function wishOf(
  zk: ZooKeeperClient,
  path: string,
  version: number,
  request: FailoverRequest,
): Wish {
  const answer = (outcome: NonNullable<FailoverRequest['outcome']>) =>
    encodeRequest({ ...request, outcome });
  const write = async (text: string) => {
    try {
      await zk.set(path, text, { version });
    } catch (error) {
      // The request was withdrawn, or an earlier write of ours answered it although it seemed lost.
      if (!(error instanceof NoNodeError || error instanceof BadVersionError)) throw error;
    }
  };
  return {
    node: request.node,
    action: request.action,
    key: path,
    waitMs: request.waitMs ?? usualWaitMs,
    tell: async (progress) => {
      if (request.waitMs === undefined || request.progress === progress) return;
      await write(encodeRequest({ ...request, progress }));
    },
    publication: {
      path,
      stillAsked: (transaction) => {
        transaction.check(path, version);
      },
      also: (moved) => (transaction) => {
        transaction.set(path, answer({ done: true, ...moved }), version);
      },
    },
    refuse: (error) => write(answer({ done: false, error })),
    fulfil: (moved) => write(answer({ done: true, ...moved })),
  };
}

function isLayoutError(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === 'LAYOUT';
}
