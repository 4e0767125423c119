import type { ZooKeeper } from './client.ts';
import type { Clock } from './clock.ts';
import { NoNodeError, ZooKeeperError } from './errors.ts';
import type { StoppableIterator } from './iterate.ts';
import { orStopped, stoppable } from './iterate.ts';
import type { NodeWatch } from './node-watch.ts';
import { pause } from './pause.ts';
import type { ChildrenReply, GetReply } from './replies.ts';

/**
 * The pause before a failed read is repeated. It grows by as much with each failure, up to ten
 * times.
 */
const retryPauseMs = 100;

export function follow(
  client: ZooKeeper,
  clock: Clock,
  path: string,
  signal: AbortSignal | undefined,
): StoppableIterator<GetReply | undefined> {
  const read = (stop: AbortSignal) => client.watch(path, { signal: stop });
  return followWatch({ client, clock, read, same: sameData }, signal);
}

export function followChildren(
  client: ZooKeeper,
  clock: Clock,
  path: string,
  signal: AbortSignal | undefined,
): StoppableIterator<ChildrenReply | undefined> {
  const read = async (stop: AbortSignal): Promise<NodeWatch<ChildrenReply | undefined>> => {
    for (;;) {
      try {
        return await client.watchChildren(path, { signal: stop });
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
      }
      // Children can be watched only if the node exists. Until then the node itself is watched.
      const node = await client.watch(path, { signal: stop });
      if (node.value === undefined) return node as NodeWatch<undefined>;
      node.cancel();
    }
  };
  return followWatch({ client, clock, read, same: sameChildren }, signal);
}

interface Followed<Value> {
  readonly client: ZooKeeper;
  readonly clock: Clock;
  readonly read: (stop: AbortSignal) => Promise<NodeWatch<Value>>;
  /** Whether nothing has changed between two values. */
  readonly same: (a: Value, b: Value) => boolean;
}

function followWatch<Value>(
  followed: Followed<Value>,
  signal: AbortSignal | undefined,
): StoppableIterator<Value> {
  const { read, same } = followed;
  return stoppable(signal, async function* (stop) {
    let last: { readonly value: Value } | undefined;
    let failures = 0;
    while (!stop.aborted) {
      let watch: NodeWatch<Value>;
      try {
        watch = await read(stop);
      } catch (error) {
        if (stop.aborted) return;
        if (!passes(error) || !(await waitOut(followed, failures, stop))) throw error;
        failures += 1;
        continue;
      }
      failures = 0;
      if (last === undefined || !same(last.value, watch.value)) {
        last = { value: watch.value };
        try {
          yield watch.value;
        } finally {
          if (stop.aborted) watch.cancel();
        }
      }
      const event = await orStopped(watch.changed, stop);
      if (event === undefined || (event.type === 'lost' && event.reason === 'closed')) {
        watch.cancel();
        return;
      }
    }
  });
}

/** Whether waiting may repair the error. */
function passes(error: unknown): boolean {
  return error instanceof ZooKeeperError && (error.retryable || error.code === 'SESSION_EXPIRED');
}

/**
 * Waits until it makes sense to try again. It pauses even if the client is connected: a server that
 * throttles, or a queue that is full, must not be asked at once.
 * @param failures how many failures in a row there were before
 * @returns false if the client will never be connected again
 */
async function waitOut(
  { client, clock }: Pick<Followed<unknown>, 'client' | 'clock'>,
  failures: number,
  stop: AbortSignal,
): Promise<boolean> {
  await pause(clock, retryPauseMs * Math.min(failures + 1, 10), stop);
  try {
    await client.connected({ signal: stop, timeoutMs: 2 ** 31 - 1 });
    return true;
  } catch {
    return stop.aborted;
  }
}

function sameData(a: GetReply | undefined, b: GetReply | undefined): boolean {
  return a?.stat.mzxid === b?.stat.mzxid && a?.stat.czxid === b?.stat.czxid;
}

function sameChildren(a: ChildrenReply | undefined, b: ChildrenReply | undefined): boolean {
  return a?.stat.pzxid === b?.stat.pzxid && a?.stat.czxid === b?.stat.czxid;
}
