import { hostname } from 'node:os';
import type { ZooKeeper } from '@incumbent/zookeeper';
import { NodeExistsError } from '@incumbent/zookeeper';
import type { Duration } from 'incumbent';
import { formatDuration, InvalidOptionError, parseDuration } from 'incumbent';
import type { Paths } from '../layout.ts';
import { anyReplica } from '../layout.ts';
import type { HostAndPort, NodeAddress } from '../node-address.ts';
import { formatNodeAddress, parseNodeAddress } from '../node-address.ts';
import type { Bound } from './bound.ts';
import { TimeUp } from './bound.ts';
import { NoManagerError } from './errors.ts';
import type { RequestOptions } from './request-failover.ts';
import { requestFailover } from './request-failover.ts';
import { show } from './show.ts';
import type { ViewFollower } from './view-follower.ts';

/** Options of `RedisFailover.manualFailover`. */
export interface ManualFailoverOptions {
  /** How long to wait for the managers. Default 30 s. */
  readonly timeout?: Duration | undefined;
  /** Gives up. A request that no manager has begun is withdrawn. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Called with the reason why the managers wait before they begin, such as "redis2:6379 is still
   * copying the data, 40 %". An error that it throws is ignored. Managers of the Ruby gem report
   * nothing.
   */
  readonly onProgress?: ((progress: string) => void) | undefined;
}

/** The result of a requested failover. */
export interface ManualFailover {
  /** The primary now, as `host:port`. */
  readonly primary: NodeAddress;
  /** The term of that primary; undefined under managers of the Ruby gem. */
  readonly term: number | undefined;
}

/** @throws InvalidOptionError */
export function checkTarget(target: unknown): NodeAddress | null {
  if (target === undefined || target === null) return null;
  if (typeof target !== 'object') {
    throw new InvalidOptionError(
      `manualFailover takes { host, port } of a replica, or nothing for the best one, not ${show(target)}`,
    );
  }
  const { host, port } = target as Partial<HostAndPort>;
  if (typeof host !== 'string' || host === '') {
    throw new InvalidOptionError(
      `host is not properly specified: ${JSON.stringify(host)}; write { host: '10.0.0.7', port: 6379 }`,
    );
  }
  if (!Number.isInteger(port) || (port as number) < 1 || (port as number) > 65_535) {
    throw new InvalidOptionError(
      `port is not properly specified: ${JSON.stringify(port)}; it is a whole number from 1 to 65535`,
    );
  }
  const address = formatNodeAddress({ host, port: port as number });
  parseNodeAddress('host and port', address);
  return address;
}

export function checkTimeout({ timeout = '30s' }: ManualFailoverOptions): number {
  return parseDuration('timeout', timeout);
}

/**
 * Writes a request that our managers answer. Managers of the gem answer nothing: see
 * `askRubyManagers`.
 */
export async function askManagers(
  zk: ZooKeeper,
  paths: Paths,
  node: NodeAddress | null,
  options: RequestOptions,
): Promise<ManualFailover> {
  const requestedBy = `${hostname()}-${process.pid}`;
  return requestFailover(zk, paths, { node, requestedBy }, options);
}

/**
 * Writes the request as the gem's clients do, and waits until `nodes` shows the result. The gem
 * never answers that it refuses, so a timeout means that.
 */
export async function askRubyManagers(
  zk: ZooKeeper,
  paths: Paths,
  node: NodeAddress | null,
  view: ViewFollower,
  bound: Bound,
  timeoutMs: number,
): Promise<ManualFailover> {
  const { signal } = bound;
  const before = view.picture.primary;
  const data = node ?? anyReplica;
  try {
    await writeRequest(zk, paths, data, signal);
    const primary = await view.until(() => {
      const now = view.picture.primary;
      return (node === null ? now !== before : now === node) ? now : undefined;
    }, bound);
    return { primary, term: undefined };
  } catch (error) {
    if (!(error instanceof TimeUp)) throw error;
    throw new NoManagerError(
      `${paths.nodes} did not show ${node ?? 'another primary'} within ${formatDuration(timeoutMs)}; ` +
        `the Ruby managers may still take what was written to ${paths.manualFailover}`,
      { cause: error },
    );
  }
}

async function writeRequest(
  zk: ZooKeeper,
  { manualFailover }: Paths,
  data: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    await zk.create(manualFailover, data, { signal });
  } catch (error) {
    if (!(error instanceof NodeExistsError)) throw error;
    await zk.set(manualFailover, data, { signal });
  }
}
