import type { GetReply, ZooKeeper } from '@incumbent/zookeeper';
import { BadVersionError, NoNodeError } from '@incumbent/zookeeper';
import { formatDuration } from 'incumbent';
import type { FailoverRequest, Paths } from '../layout.ts';
import { decodeRequest, encodeRequest } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import { FailoverRefusedError, NoManagerError, OutcomeUnknownError } from './errors.ts';

export interface RequestedFailover {
  readonly primary: NodeAddress;
  readonly term: number;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to wait for the outcome. */
  readonly timeoutMs: number;
  /** Called with the reason why the manager waits, when it is a new one. */
  readonly onProgress?: ((progress: string) => void) | undefined;
}

/** The time for the withdrawal, which is one write, or one read. */
const withdrawTimeoutMs = 5_000;

/**
 * Asks the elected manager to move the primary, and waits until it has. A caller that gives up
 * withdraws the request, so that no manager carries it out later.
 * @param request `node`: the node to promote, null for the best replica
 * @returns rejects with FailoverRefusedError (with the manager's message), NoManagerError (not
 *   begun in time, and withdrawn), or OutcomeUnknownError (begun, or maybe begun). Also with an
 *   error of ZooKeeper, and with the reason of `signal` if it was withdrawn before a manager had
 *   handled it
 */
export async function requestFailover(
  zk: ZooKeeper,
  paths: Paths,
  request: Pick<FailoverRequest, 'node' | 'requestedBy' | 'action'>,
  { signal, timeoutMs, onProgress }: RequestOptions,
): Promise<RequestedFailover> {
  signal?.throwIfAborted();
  const timeUp = AbortSignal.timeout(Math.ceil(timeoutMs));
  const stop = signal === undefined ? timeUp : AbortSignal.any([signal, timeUp]);
  try {
    await zk.ensurePath(paths.requests, { signal: stop });
  } catch (error) {
    if (timeUp.aborted) throw notReached(timeoutMs, error);
    throw error;
  }
  let path: string;
  try {
    // Ephemeral: the request of a client that died is not served later. Protected: a lost reply
    // leaves no second request.
    const options = { ephemeral: true, sequential: true, protected: true, signal: stop };
    const data = encodeRequest({ ...request, waitMs: Math.ceil(timeoutMs) });
    ({ path } = await zk.create(`${paths.requests}/request-`, data, options));
  } catch (error) {
    const message =
      `ZooKeeper did not confirm the request for a failover; it may stand until the session of this ` +
      `client ends, and be carried out: ${(error as Error).message}`;
    throw new OutcomeUnknownError(message, undefined, { cause: error });
  }
  let told: string | undefined;
  // Ends when `stop` aborts.
  for await (const reply of zk.follow(path, { signal: stop })) {
    const { outcome, progress } = requestAt(path, reply);
    if (outcome !== undefined) return settle(zk, path, outcome);
    if (progress === undefined || progress === told) continue;
    told = progress;
    try {
      onProgress?.(progress);
    } catch {
      // The request goes on, whatever the listener throws.
    }
  }
  return withdraw(zk, path, {
    timeoutMs,
    reason: signal?.aborted === true ? signal.reason : undefined,
  });
}

type Outcome = NonNullable<FailoverRequest['outcome']>;

function requestAt(path: string, reply: GetReply | undefined): FailoverRequest {
  if (reply === undefined) {
    throw new OutcomeUnknownError(
      `the request ${path} for a failover vanished before a manager had answered it: the session of ` +
        'this client expired, or somebody deleted it; look at who is primary now',
    );
  }
  return decodeRequest(path, reply.text);
}

async function settle(zk: ZooKeeper, path: string, outcome: Outcome): Promise<RequestedFailover> {
  // If this fails, the request goes with the session.
  await zk.delete(path, { timeoutMs: withdrawTimeoutMs }).catch(() => {});
  if (!outcome.done) throw new FailoverRefusedError(outcome.error);
  const { primary, term } = outcome;
  return { primary, term };
}

interface GivenUp {
  readonly timeoutMs: number;
  /** undefined if the time was over. */
  readonly reason: unknown;
}

async function withdraw(
  zk: ZooKeeper,
  path: string,
  { timeoutMs, reason }: GivenUp,
): Promise<RequestedFailover> {
  const bounded = { timeoutMs: withdrawTimeoutMs };
  let progress: string | undefined;
  try {
    // Repeated, because a manager that waits writes its reason into the request once a second.
    for (let version = 0; ; ) {
      try {
        // Deletes only the version that was read, so no manager has written an outcome since.
        await zk.delete(path, { version, ...bounded });
        break;
      } catch (error) {
        if (!(error instanceof BadVersionError)) throw error;
        const reply = await zk.get(path, bounded);
        const read = requestAt(path, reply);
        if (read.outcome !== undefined) return await settle(zk, path, read.outcome);
        ({ progress } = read);
        ({ version } = reply.stat);
      }
    }
  } catch (error) {
    if (error instanceof FailoverRefusedError) throw error;
    if (error instanceof NoNodeError) requestAt(path, undefined);
    throw new OutcomeUnknownError(
      `the request ${path} for a failover could not be withdrawn: it is carried out if a manager ` +
        `takes it before the session of this client ends: ${(error as Error).message}`,
      undefined,
      { cause: error },
    );
  }
  if (reason !== undefined) throw reason;
  if (progress !== undefined) {
    throw new FailoverRefusedError(
      `${progress}; nothing was changed within ${formatDuration(timeoutMs)}, and the request is withdrawn`,
    );
  }
  throw new NoManagerError(
    `no manager answered the request for a failover within ${formatDuration(timeoutMs)}, so it was ` +
      'withdrawn (a move that had begun goes on): does one run with this root?',
  );
}

function notReached(timeoutMs: number, cause: unknown): NoManagerError {
  return new NoManagerError(
    `ZooKeeper did not answer within ${formatDuration(timeoutMs)}; nothing was requested`,
    { cause },
  );
}
