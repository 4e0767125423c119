import { BadVersionError, NoNodeError } from '@incumbent/zookeeper';
import type { FailoverRequest, Paths } from '../layout.ts';
import { anyReplica, decodeRequest, encodeRequest } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';
import type { Moved, Publication } from './move-world.ts';

/** Somebody asks for another primary. */
export interface Wish {
  /** null: the best replica. */
  readonly node: NodeAddress | null;
  /** Left out: a failover. */
  readonly action?: FailoverRequest['action'];
  /** The same in each look at it. */
  readonly key: string;
  /** For how long a node is waited for that is still copying. */
  readonly waitMs: number;
  /** Tells whoever asked what is waited for. */
  readonly tell: ((progress: string) => Promise<void>) | undefined;
  /** What a publication that fulfils it writes besides. */
  readonly publication: Publication;
  /** How the refusal is told to whoever asked; undefined where the record takes note of it. */
  readonly refuse: ((error: string) => Promise<void>) | undefined;
  /** The same as an answer without a move: it is the primary already. */
  readonly fulfil: ((moved: Moved) => Promise<void>) | undefined;
}

/** Where the request does not say. */
const usualWaitMs = 30_000;

/**
 * The requests of our clients that wait for an answer, the oldest first. One that cannot be read is
 * passed over: it is its owner's, and goes with its session.
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
 * What a client of the Ruby gem has written to `manual_failover` since the record was written last.
 * The gem does not clear it, so what counts is when.
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
  // The gem passes over it, too.
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

/** Up to where `manual_failover` counts as dealt with, where no record says: nothing old is done. */
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
      // Whoever asked has taken it back, or it was answered by a write that we took for lost.
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
