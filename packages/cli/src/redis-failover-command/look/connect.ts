import type { ZooKeeper } from '@incumbent/zookeeper';
import { connect, ZooKeeperError } from '@incumbent/zookeeper';
import { formatDuration, parseDuration } from 'incumbent';
import type { Place } from '../config/place.ts';
import type { Context } from '../context.ts';
import { CommandError, exitCodes } from '../failure.ts';

/** The session only reads, so a command that ends without closing it leaves nothing behind. */
const closeTimeoutMs = 1_000;

export interface Connected {
  readonly zk: ZooKeeper;
  readonly place: Place;
  /** Aborted when the command is interrupted or `--timeout` is over. */
  readonly signal: AbortSignal;
  /** From here on only an interruption ends it. */
  takeTime(): void;
}

/**
 * Runs `job` with a session, all within `timeout`.
 * @throws CommandError ZOOKEEPER_UNAVAILABLE; an error of `job`; `context.signal.reason`
 */
export async function withZooKeeper<T>(
  place: Place,
  timeout: string,
  context: Context,
  job: (connected: Connected) => Promise<T>,
): Promise<T> {
  const timeoutMs = parseDuration('--timeout', timeout);
  const tooLate = new AbortController();
  const timer = setTimeout(() => tooLate.abort(awayError(place, timeoutMs)), timeoutMs);
  const signal = AbortSignal.any([context.signal, tooLate.signal]);
  let zk: ZooKeeper | undefined;
  try {
    zk = await openZooKeeper(place, timeoutMs, signal);
    return await job({ zk, place, signal, takeTime: () => clearTimeout(timer) });
  } catch (error) {
    context.signal.throwIfAborted();
    throw isAway(error) ? awayError(place, timeoutMs, error) : error;
  } finally {
    clearTimeout(timer);
    await zk?.close();
  }
}

async function openZooKeeper(
  { zookeeper, zookeeperOptions }: Place,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ZooKeeper> {
  // Before `--timeout` is over: the client knows why it has not connected.
  const connectTimeoutMs = 0.8 * timeoutMs;
  const options = { ...zookeeperOptions, connectTimeoutMs, closeTimeoutMs, signal };
  const zk = await connect(zookeeper, options);
  try {
    // Reads after this show what the quorum has committed, and not an old state of one server.
    await zk.sync('/', { signal });
    const { stat } = await zk.stat('/', { signal });
    if (stat === null) {
      const message = `the chroot of ${zookeeper} does not exist: is it misspelt? A manager makes it`;
      throw new CommandError('NO_CHROOT', exitCodes.no, message);
    }
    return zk;
  } catch (error) {
    await zk.close();
    throw error;
  }
}

/** ZooKeeper cannot be reached, or did not answer a request. */
function isAway(error: unknown): boolean {
  return (
    error instanceof ZooKeeperError &&
    (error.retryable || error.code === 'CONNECT_TIMEOUT' || error.code === 'SESSION_EXPIRED')
  );
}

function awayError({ zookeeper }: Place, timeoutMs: number, cause?: unknown): CommandError {
  const last = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const why = last instanceof Error ? `: ${last.message}` : '';
  return new CommandError(
    'ZOOKEEPER_UNAVAILABLE',
    exitCodes.zookeeper,
    `ZooKeeper at ${zookeeper} did not answer within ${formatDuration(timeoutMs)} (--timeout)${why}`,
    { cause },
  );
}
