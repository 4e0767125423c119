import type { CallOptions } from './arguments.ts';
import type { Caller } from './caller.ts';
import { boundsOf } from './create.ts';
import { checkPath } from './paths.ts';
import type { ReadRequest } from './protocol/messages.ts';
import type { RequestKind } from './protocol/requests.ts';
import { requests } from './protocol/requests.ts';
import type { ChildrenReply } from './replies.ts';
import { GetReply } from './replies.ts';
import type { ReplyHandlers } from './session/pending-request.ts';
import type { OneShot, OneShotKind, WatchEvent } from './session/watch-registry.ts';

export type { WatchEvent };

/** What was read, and a promise of the next change after it. None between the two is missed. */
export class NodeWatch<Value> {
  readonly path: string;
  readonly value: Value;
  /** Resolves once, and never rejects. */
  readonly changed: Promise<WatchEvent>;
  /**
   * Stops watching: `changed` resolves with `lost`, reason `cancelled`. Idempotent. Can be kept apart
   * from this object, and then keeps neither it nor what was read.
   */
  readonly cancel: () => void;

  /** Use `client.watch` or `client.watchChildren`. */
  constructor(caller: Caller, kind: OneShotKind, path: string, value: Value) {
    const { watches } = caller.session;
    const serverPath = caller.chroot.toServer(path);
    this.path = path;
    this.value = value;
    // Of all this only the promise's own function is kept where it waits for the event: neither the
    // value nor this object, unless the caller keeps them.
    let listener: OneShot = () => {};
    this.changed = new Promise((resolve) => {
      listener = resolve;
    });
    watches.add(kind, serverPath, listener);
    this.cancel = () => watches.cancel(kind, serverPath, listener);
  }
}

/** The data of a node, or undefined while it does not exist, and the next change of either. */
export async function watchNode(
  caller: Caller,
  path: string,
  options: CallOptions | undefined,
): Promise<NodeWatch<GetReply | undefined>> {
  checkPath(path);
  const { signal, timeoutMs = caller.session.retryTimeoutMs } = options ?? {};
  const bounds = boundsOf(caller, { signal, timeoutMs }, false);
  for (;;) {
    const present = await readAndWatch(caller, path, requests.getData, bounds(), {
      complete: ({ data, stat }, answer) =>
        new NodeWatch<GetReply | undefined>(caller, 'data', path, new GetReply(data, stat, answer)),
      absent: () => undefined,
    });
    if (present !== undefined) return present;
    const absent = await readAndWatch(caller, path, requests.exists, bounds(), {
      // It was made in between; a watch of its data is set now, which the next read will use.
      complete: () => undefined,
      absent: () => new NodeWatch<GetReply | undefined>(caller, 'exist', path, undefined),
    });
    if (absent !== undefined) return absent;
  }
}

/** The children of a node and their next change. Rejects NoNodeError when there is no such node. */
export async function watchChildren(
  caller: Caller,
  path: string,
  options: CallOptions | undefined,
): Promise<NodeWatch<ChildrenReply>> {
  checkPath(path);
  return readAndWatch(caller, path, requests.getChildren2, options, {
    complete: ({ children, stat }, { zxid, sentAt }) =>
      new NodeWatch(caller, 'child', path, { children, stat, zxid, sentAt }),
  });
}

/** A read that sets a watch, unless it can ride on a persistent one (see WatchRegistry). */
function readAndWatch<Response, Result>(
  caller: Caller,
  path: string,
  kind: RequestKind<ReadRequest, Response>,
  options: CallOptions | undefined,
  handlers: ReplyHandlers<Response, Result>,
): Promise<Result> {
  const { watches } = caller.session;
  const serverPath = caller.chroot.toServer(path);
  const ride = watches.beginRead(serverPath);
  const body = { path: serverPath, watch: ride === undefined };
  if (ride === undefined) return caller.call(kind, path, body, handlers, options);
  const end = () => watches.endRide(serverPath, ride);
  // What registers the watch comes first: it keeps the persistent one on the server.
  const thenEnd = <Argument extends unknown[]>(handle: (...from: Argument) => Result) => {
    return (...from: Argument): Result => {
      const result = handle(...from);
      end();
      return result;
    };
  };
  const { complete, absent } = handlers;
  const riding: ReplyHandlers<Response, Result> = { complete: thenEnd(complete), failed: end };
  if (absent !== undefined) riding.absent = thenEnd(absent);
  return caller.call(kind, path, body, riding, options);
}
